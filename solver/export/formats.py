"""The formats by name, and the one call that writes any of them: whole, or not at all."""

from __future__ import annotations

import importlib
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from instances.errors import InputError
from solver.export.source import Source, replayed
from solver.result import Result

Writer = Callable[[Source, Path], str]


@dataclass(frozen=True)
class Format:
    """One format.

    Parameters
    ----------
    module, function
        Where its writer is; imported when it is asked for, since a package behind it may be missing.
    folder
        Whether it is a folder of files.
    package, extra
        Package that is not always installed, and the extra of this distribution that brings it.
    """

    says: str
    module: str
    function: str = "write"
    folder: bool = True
    package: str | None = None
    extra: str | None = None


FORMATS = {
    "perfetto": Format("a timeline for ui.perfetto.dev", "solver.export.perfetto", folder=False),
    "chakra": Format("execution traces for ASTRA-sim", "solver.export.chakra.files"),
    "sglang": Format("settings and scripts for SGLang", "solver.export.engines.sglang"),
    "vllm": Format("settings and scripts for vLLM", "solver.export.engines.vllm"),
    "vllm-ascend": Format("settings and scripts for vLLM-Ascend", "solver.export.engines.vllm_ascend"),
    "tensorrt-llm": Format("settings for TensorRT-LLM", "solver.export.engines.tensorrt_llm"),
    "parquet": Format(
        "tables for data frames", "solver.export.arrow", "write_parquet", package="pyarrow", extra="arrow"
    ),
    "arrow": Format("the same, in Arrow files", "solver.export.arrow", "write_arrow", package="pyarrow", extra="arrow"),
}


def export_result(result: Result, to: str, out: Path) -> str:
    """Replay the plan of a result and write it in another tool's format.

    Parameters
    ----------
    to
        A name from ``FORMATS``.
    out
        A file, which may exist, or a folder, which must be new or empty, as the format asks.

    Returns
    -------
    str
        What was written, in a few words.

    Raises
    ------
    InputError
        For an unknown format, a missing package, a path that cannot be written or a result without a plan; nothing is
        written then.
    InfeasibleError
        If the plan breaks a rule or deadlocks, here or in the tool that it is meant for.
    """
    writer = find_writer(to)
    target = find_target(to, out)
    return write(writer, replayed(result), target, folder=FORMATS[to].folder)


def find_writer(to: str) -> Writer:
    """The writer of a format; InputError if there is none, or its package is missing."""
    if to not in FORMATS:
        raise InputError("to", to, f"one of {', '.join(FORMATS)}")
    form = FORMATS[to]
    try:
        module = importlib.import_module(form.module)
    except ModuleNotFoundError as error:
        if form.package is None or (error.name or "").partition(".")[0] != form.package:
            raise
        others = ", ".join(name for name, other in FORMATS.items() if other.package != form.package)
        raise InputError(
            "to", to, f"{others}, or {form.package} installed: pip install 'waferplan[{form.extra}]'"
        ) from None
    writer: Writer = getattr(module, form.function)
    return writer


def find_target(to: str, out: Path) -> Path:
    """Where to write, tried before a long replay; links are followed. InputError if it cannot be."""
    folder = FORMATS[to].folder
    allowed = "a new or an empty folder" if folder else "a new file or a regular file"
    try:
        target = out.resolve()
        if target.exists() and not (_is_empty_folder(target) if folder else target.is_file()):
            raise InputError("out", str(out), f"{allowed} for {to}")
        if not target.parent.is_dir():
            raise InputError("out", str(out), f"{allowed} in an existing folder ({target.parent} is none)")
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError("out", str(out), f"{allowed} that can be written ({reason})") from None
    return target


def write(writer: Writer, source: Source, target: Path, *, folder: bool) -> str:
    """Call a writer on a path beside the target and rename that, so that no part of the target is ever seen."""
    try:
        work = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    except OSError as error:
        raise InputError("out", str(target), f"a path that can be written ({error.strerror})") from None
    try:
        part = work / target.name
        if folder:
            part.mkdir()
        written = writer(source, part)
        part.replace(target)
    except OSError as error:
        raise InputError("out", str(target), f"a path that can be written ({error.strerror or error})") from None
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return written


def _is_empty_folder(path: Path) -> bool:
    return path.is_dir() and not any(path.iterdir())
