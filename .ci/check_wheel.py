"""Check a built wheel against the checkout: every source and data file of the four packages is in it, nothing else.

Usage: python .ci/check_wheel.py WHEEL
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path, PurePosixPath

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGES = ("instances", "formulations", "solver", "reports")
LEFT_OUT = ("reports/gallery/",)  # sample output, for readers of the repository


def expected_names() -> set[str]:
    """Names, relative to the repository, of the files that belong in a wheel."""
    names = set()
    for package in PACKAGES:
        for path in (REPOSITORY / package).rglob("*"):
            name = path.relative_to(REPOSITORY).as_posix()
            hidden = "__pycache__" in path.parts or PurePosixPath(name).name.startswith(".")
            if path.is_file() and not hidden and not name.startswith(LEFT_OUT):
                names.add(name)
    return names


def main() -> int:
    """Print what is missing or in excess; 1 if there is any."""
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        packed = {name for name in wheel.namelist() if ".dist-info/" not in name and not name.endswith("/")}
    expected = expected_names()
    for name in sorted(expected - packed):
        print(f"missing from the wheel: {name}")
    for name in sorted(packed - expected):
        print(f"should not be in the wheel: {name}")
    data = sum(1 for name in packed if not name.endswith(".py"))
    print(f"wheel: {len(packed)} files, {data} of them data")
    return 0 if packed == expected else 1


if __name__ == "__main__":
    sys.exit(main())
