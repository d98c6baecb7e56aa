"""Suites: folders of instances, shipped ones by name and others by path."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path

from instances.errors import InputError
from instances.instance import Instance

BEST_KNOWN = "best_known.json"
"""File of a suite that is no instance: the best values and bounds known."""
PLANS = "plans"
"""Folder of a suite with the plans behind its best-known values."""
_SHIPPED = Path(__file__).parent / "data" / "suites"


@dataclass(frozen=True)
class Suite:
    """A folder of instance files, with a README and best-known values where somebody wrote them.

    Attributes
    ----------
    name
        Name of the folder; records carry it.
    folder
        Where the files are.
    """

    name: str
    folder: Path

    @property
    def files(self) -> list[Path]:
        """Instance files, sorted by name."""
        return sorted(path for path in self.folder.glob("*.json") if path.name != BEST_KNOWN)

    @property
    def placements(self) -> list[Path]:
        """Files of placement problems, sorted by name: NAME-RxC.csv and QAPLIB's NAME.dat."""
        return sorted(path for ending in ("csv", "dat") for path in self.folder.glob(f"*.{ending}"))

    @property
    def best_known(self) -> Path:
        """Path of the best-known values; the file need not exist."""
        return self.folder / BEST_KNOWN

    @property
    def has_files(self) -> bool:
        """Whether there is anything to solve in it."""
        return bool(self.files or self.placements)

    def plan_file(self, instance: str) -> Path:
        """Path of the plan behind an instance's best-known value."""
        return self.folder / PLANS / f"{instance}.json"

    @property
    def asks(self) -> str:
        """The question the suite asks, from the first paragraph of its README; empty without one."""
        readme = self.folder / "README.md"
        text = readme.read_text(encoding="utf-8") if readme.is_file() else ""
        found = re.search(r"\*\*Asks:\*\*\s*(.*?)(?:\n\s*\n|\Z)", text, re.DOTALL)
        return "" if found is None else " ".join(found.group(1).split())

    def load(self) -> list[Instance]:
        """All instances; InputError names the file at fault."""
        return [Instance.load(path) for path in self.files]


def suite_names() -> tuple[str, ...]:
    """Names of the suites that ship with the project, sorted."""
    return tuple(sorted(path.name for path in _SHIPPED.iterdir() if path.is_dir() and Suite(path.name, path).has_files))


def find_suite(name: str) -> Suite:
    """A shipped suite by name, or a folder of instance files by its path.

    Raises
    ------
    InputError
        For an unknown name, with the known ones, the closest first; for a folder without instance files.
    """
    known = suite_names()
    if name in known:
        return Suite(name, _SHIPPED / name)
    folder = Path(name)
    if not folder.is_dir():
        closest = difflib.get_close_matches(name.lower(), known, n=len(known), cutoff=0.0)
        raise InputError("suite", name, f"a folder of instance files, or one of {', '.join(closest)}")
    suite = Suite(folder.resolve().name, folder)
    if not suite.has_files:
        raise InputError("suite", name, "a folder with instance files (*.json, NAME-RxC.csv, or QAPLIB's *.dat) in it")
    return suite
