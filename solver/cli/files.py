"""Files that commands read and write."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from instances.errors import InputError
from instances.instance import Instance
from instances.plan import Plan
from solver.result import write_whole


@contextmanager
def in_file(path: Path) -> Iterator[None]:
    """Name the file in every InputError that does not name one."""
    try:
        yield
    except InputError as error:
        raise error.in_file(str(path)) from error


def read_instance(path: Path) -> Instance:
    """An instance that has costs: its cost model is built, so that a layer without a formula is refused here."""
    with in_file(path):
        instance = Instance.load(path)
        _ = instance.stage_cost
    return instance


def read_plan(path: Path, instance: Instance) -> Plan:
    """A plan, or the plan of a result file, that was made for this instance."""
    with in_file(path):
        plan = Plan.load(path)
        if plan.instance != instance.fingerprint:
            allowed = f"the fingerprint of this instance ({instance.fingerprint}): the plan was made for another one"
            raise InputError("instance", plan.instance, allowed)
    return plan


def output_file(option: str, path: Path) -> Path:
    """The path of a file that can be written, tried before a long run; links are followed."""
    try:
        resolved = path.resolve()
        if resolved.exists() and not resolved.is_file():
            raise InputError(option, str(path), "a new file or a regular file (it is a folder or a device)")
        if not resolved.parent.is_dir():
            raise InputError(option, str(path), f"a file in an existing folder ({resolved.parent} is none)")
        with tempfile.TemporaryFile(dir=resolved.parent):
            pass
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(option, str(path), f"a file in a folder that can be written ({reason})") from None
    return resolved


def write_file(option: str, path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    try:
        write_whole(path, text)
    except OSError as error:
        raise InputError(option, str(path), f"a file that can be written ({error.strerror})") from None
