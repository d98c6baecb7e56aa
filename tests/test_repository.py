"""What holds for the repository as a whole: sizes, one version, pinned packages, nothing of one machine."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.shared_data import REPOSITORY, shared_path

PACKAGES = ("instances", "formulations", "solver", "reports")
LONGEST_FILE_LINES = 400
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# Split so that this file does not hold what it forbids.
MACHINE_PATHS = re.compile(
    r"(?<![\w.])/(?:" + "|".join(("wo" + "rk/", "tm" + "p/", "ro" + "ot/", "ho" + "me/", "op" + "t/")) + r")"
    r"|\.\./" + r"\." + r"library|\." + "pyenv"
)


def _files() -> Iterator[Path]:
    """Files of the project: the known folders and the top level, without caches and without what users add."""
    for folder in (*PACKAGES, "tests", "docs", ".ci"):
        for path in sorted((REPOSITORY / folder).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path
    yield from (REPOSITORY / name for name in ("pyproject.toml", "constraints.txt", "README.md", ".gitignore"))


def _names(paths: list[Path]) -> list[str]:
    return [path.relative_to(REPOSITORY).as_posix() for path in paths]


def _python_files() -> list[Path]:
    return [path for path in _files() if path.suffix == ".py"]


def _content_hash(path: Path) -> str:
    """Hash that survives reformatting: JSON by its value, text by its words."""
    content = path.read_bytes()
    if path.suffix == ".json":
        with contextlib.suppress(ValueError):  # broken on purpose, for a test
            content = json.dumps(json.loads(content), sort_keys=True).encode()
    return hashlib.sha256(b" ".join(content.split())).hexdigest()


def test_source_files_stay_small() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in _python_files()}
    assert _names([path for path, count in lines.items() if count > LONGEST_FILE_LINES]) == []


def test_folders_with_modules_are_packages() -> None:
    # The import contracts and the type checker pass over modules whose folder has no __init__.py.
    folders = {path.parent for path in _python_files() if ".ci" not in path.parts}
    assert _names([folder for folder in sorted(folders) if not (folder / "__init__.py").exists()]) == []


def test_version_is_written_once() -> None:
    literal = re.compile(r"""^\s*(?:__version__|VERSION)\b[^=\n]*=\s*["']""", re.MULTILINE)
    assert _names([path for path in _python_files() if literal.search(path.read_text(encoding="utf-8"))]) == []
    try:
        installed = version("waferplan")
    except PackageNotFoundError:
        pytest.skip("waferplan is not installed, only found in the working directory")
    assert installed == PROJECT["version"]


def test_no_paths_of_one_machine() -> None:
    found = []
    for path in _files():
        try:
            text = path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue  # pictures; a README that is not in a source distribution's tests
        if MACHINE_PATHS.search(text):
            found.append(path)
    assert _names(found) == []


def test_shared_data_is_not_copied() -> None:
    shared = [path for path in shared_path("data").rglob("*") if path.is_file() and path.stat().st_size > 0]
    theirs = {_content_hash(path): path.name for path in shared}
    assert theirs, "the shared data folder is empty"
    ours = [path for path in _files() if path.exists() and path.stat().st_size > 0]
    assert _names([path for path in ours if _content_hash(path) in theirs]) == []


def test_every_package_is_pinned() -> None:
    pins = [
        Requirement(line)
        for line in (REPOSITORY / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    assert all(re.fullmatch(r"==[^,*]+", str(pin.specifier)) for pin in pins)
    pinned = {canonicalize_name(pin.name) for pin in pins}
    assert sorted(_closure([*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]) - pinned) == []


def _closure(requirements: list[str]) -> set[str]:
    """Names of everything that installing ``requirements`` brings, as installed here."""
    found: set[str] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name in found or not _applies(requirement):
            continue
        found.add(name)
        with contextlib.suppress(PackageNotFoundError):  # an environment made by hand need not have every tool
            waiting += [Requirement(text) for text in requires(name) or ()]
    return found


def _applies(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})
