"""The page of a benchmark: profiles, proofs, losses, the paper's comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from formulations.interface import relative_gap
from instances.numbers import UNKNOWN, digits, share_text
from reports.content import Cell, Page, Section, Table, words
from reports.figures.cactus import cactus_figure
from reports.figures.losses import losses_figure
from reports.figures.paper import paper_figure
from reports.figures.profile import profile_figure
from reports.footer import footer_text
from solver.benchmark.paper import ASSUMPTIONS
from solver.benchmark.placements import OBJECTIVES
from solver.benchmark.record import Record
from solver.benchmark.statistics import Reference, Row, contradictions, gap_of, loss, references, summarise
from solver.benchmark.task import label_of

PER_HOP = "weighted hops"


def benchmark_page(records: Sequence[Record], name: str, skipped: int = 0) -> Page:
    """All about the runs of a records file.

    Values are held against the best of the file itself, bounds against the largest.

    Parameters
    ----------
    skipped
        Lines of the file that are no records.
    """
    known = references(records, {})
    summary = summarise(records, known)
    suites = list(dict.fromkeys(record.suite for record in records))
    machines = sorted({record.cpu for record in records if record.cpu})
    times = sorted(record.time for record in records)
    paragraphs = [
        f"{len(records)} runs on {len(suites)} suites ({', '.join(suites)}), from {times[0]} to {times[-1]}; "
        f"processor: {', '.join(machines) or 'not recorded'}.",
        "Losses are against the best value of any run in the file; bounds are the largest of any run.",
    ]
    if skipped:
        paragraphs.append(f"{skipped} lines of the file are no records and are left out.")
    paragraphs += [f"Contradiction: {line}" for line in contradictions(records, known)]
    pictures = [profile_figure(records, known), cactus_figure(summary), losses_figure(records, known)]
    sections = [
        Section("Summary", paragraphs, tables=[_summary_table(summary), _bounds_table(records, known)]),
        Section("Pictures", figures=[picture for picture in pictures if picture is not None]),
    ]
    paper = paper_figure(records)
    if paper is not None:
        sections.append(Section("The paper's comparison", list(ASSUMPTIONS), figures=[paper]))
    sections.append(Section("Runs", tables=[_runs_table(records, known)]))
    versions = sorted({f"{key} {value}" for record in records for key, value in record.versions.items()})
    sections.append(Section("Versions of the runs", [", ".join(versions)]))
    return Page(name, "Benchmark report", sections, footer_text())


def _summary_table(summary: Sequence[Row]) -> Table:
    rows = [
        [
            words(row.suite),
            words(row.method),
            _plain(row.runs),
            _plain(row.solved),
            _plain(row.proved),
            _plain(row.errors),
            _share(row.median_loss),
            _share(row.worst_loss),
            words(row.worst_instance or UNKNOWN),
            Cell(f"{row.mean_runtime_s:.1f} s", row.mean_runtime_s),
        ]
        for row in summary
    ]
    columns = ("suite", "method", "runs", "plans", "proved", "failed", "median loss", "worst loss", "worst at", "time")
    note = "Losses over the runs with a plan; time is a geometric mean, shifted by 1 s."
    return Table("Methods by suite", columns, rows, (*columns[2:8], "time"), note)


def _bounds_table(records: Sequence[Record], known: Mapping[str, Reference]) -> Table:
    rows = []
    for fingerprint, (suite, instance, unit) in _instances(records).items():
        found = known[fingerprint]
        gap, trivial = gap_of(found), relative_gap(found.value, found.trivial_bound)
        rows.append(
            [
                words(suite),
                words(instance),
                *(_amount(value, unit) for value in (found.value, found.bound)),
                _share(gap),
                _share(trivial),
            ]
        )
    columns = ("suite", "instance", "best value", "best bound", "gap", "gap of the trivial bound")
    return Table("Gaps: best value against best bound", columns, rows, columns[2:])


def _runs_table(records: Sequence[Record], known: Mapping[str, Reference]) -> Table:
    rows = []
    for record in records:
        ended = record.error or (record.reason or "" if record.value is None else "")
        rows.append(
            [
                words(record.suite),
                words(record.instance),
                words(label_of(record.method, record.knobs, record.chunks)),
                _plain(record.seed),
                _amount(record.value, _unit(record)),
                _amount(record.bound, _unit(record)),
                _share(record.gap),
                _share(loss(record, known)),
                words(record.status),
                Cell(f"{record.runtime_s:.1f} s", record.runtime_s),
                words(ended),
            ]
        )
    columns = ("suite", "instance", "method", "seed", "value", "bound", "gap", "loss", "status", "time", "remarks")
    return Table("All runs", columns, rows, (*columns[3:8], "time"))


def _instances(records: Sequence[Record]) -> dict[str, tuple[str, str, str]]:
    return {record.fingerprint: (record.suite, record.instance, _unit(record)) for record in records}


def _unit(record: Record) -> str:
    return PER_HOP if record.objective in OBJECTIVES else "s"


def _amount(value: float | None, unit: str) -> Cell:
    return Cell(UNKNOWN if value is None else f"{digits(value)} {unit}", value)


def _share(value: float | None) -> Cell:
    return Cell(share_text(value), value)


def _plain(number: int) -> Cell:
    return Cell(str(number), number)
