"""The one call that makes a report."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from instances.errors import InputError
from reports.benchmark_report import benchmark_page
from reports.capacity_report import capacity_page
from reports.content import Page
from reports.drawing import png_bytes, svg_text
from reports.html import page_html
from reports.inputs import Records, Source, check_kinds, read_source
from reports.result_report import result_page
from solver.capacity.result import CapacityResult
from solver.result import Result, write_whole

Note = Callable[[str], None]
Sources = Source | str | Path | Sequence[Source | str | Path]


@dataclass(frozen=True)
class ReportFiles:
    """What was written: the page, SVG and PNG of every picture, and the documents that repeat it."""

    html: Path
    figures: tuple[Path, ...]
    documents: tuple[Path, ...]


def report(sources: Sources, out_dir: str | Path, *, note: Note | None = None) -> ReportFiles:
    """Write a report: one HTML file that needs nothing else, and every picture as SVG and PNG beside it.

    Parameters
    ----------
    sources
        A result, several results, a capacity table or the records of a benchmark, or paths of their files.
    out_dir
        A folder; it is made if need be, files of an earlier report in it are replaced.
    note
        Called with a few words when a part of the work starts.

    Raises
    ------
    InputError
        For a file of another kind, a result whose parts do not belong together, or a folder that cannot be written.
    InfeasibleError
        If a plan breaks a rule or deadlocks.
    """
    say = note or (lambda line: None)
    read = _read(sources)
    folder = Path(out_dir)
    make_folder(folder)
    say("replay")
    documents: dict[str, str] = {}
    page = _page(read, documents)
    drawings: dict[str, str] = {}
    for figure in page.figures:
        say(f"drawing {figure.name}")
        svg = svg_text(figure)
        drawings[figure.name] = svg
    say("page")
    text = page_html(page, drawings)
    try:
        return _written(folder, text, drawings, documents)
    except OSError as error:
        raise InputError("out", str(folder), f"a folder that can be written ({error.strerror})") from None


def page_of(sources: Sources) -> Page:
    """The content of a report, not yet drawn."""
    return _page(_read(sources), {})


def make_folder(folder: Path) -> None:
    """Make the folder of a report and of its pictures; InputError if that cannot be."""
    try:
        (folder / "figures").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("out", str(folder), f"a folder that can be made and written ({error.strerror})") from None


def _read(sources: Sources) -> list[Source]:
    given = [sources] if isinstance(sources, str | Path | Result | CapacityResult | Records) else list(sources)
    read = [read_source(Path(one)) if isinstance(one, str | Path) else one for one in given]
    check_kinds(read)
    return read


def _page(sources: Sequence[Source], documents: dict[str, str]) -> Page:
    """The page; results add the files that repeat them to ``documents``."""
    if isinstance(sources[0], Result):
        results = [source for source in sources if isinstance(source, Result)]
        files = []
        for number, result in enumerate(results, start=1):
            mark = f"-{number}" if len(results) > 1 else ""
            names = f"instance{mark}.json", f"result{mark}.json"
            documents[names[0]] = json.dumps(result.instance, indent=1) + "\n"
            documents[names[1]] = result.to_json() + "\n"
            files.append(names)
        return result_page(results, files)
    source = sources[0]
    if isinstance(source, CapacityResult):
        return capacity_page(source)
    assert isinstance(source, Records)
    return benchmark_page(source.records, source.name, source.skipped)


def _written(folder: Path, text: str, drawings: dict[str, str], documents: dict[str, str]) -> ReportFiles:
    figures: list[Path] = []
    for name, svg in drawings.items():
        path = folder / "figures" / name
        write_whole(path.with_name(f"{name}.svg"), svg)
        path.with_name(f"{name}.png").write_bytes(png_bytes(svg))
        figures += [path.with_name(f"{name}.svg"), path.with_name(f"{name}.png")]
    for name, content in documents.items():
        write_whole(folder / name, content)
    html = folder / "report.html"
    write_whole(html, text)
    return ReportFiles(html, tuple(figures), tuple(folder / name for name in documents))
