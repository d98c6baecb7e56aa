"""What ``benchmark`` prints: the runs, losses a method and suite, profiles, proofs."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

from formulations.interface import relative_gap
from instances.numbers import UNKNOWN, digits, share_text, time_text
from solver.benchmark.placements import OBJECTIVES
from solver.benchmark.record import Record
from solver.benchmark.statistics import RATIOS, Reference, Row, gap_of, loss
from solver.benchmark.task import label_of
from solver.cli.errors import one_line
from solver.cli.sheets import Sheet
from solver.cli.tables import shortened

_NOTE = 120
_PROOF_TIMES_S = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
Known = Mapping[str, Reference]


def run_sheets(suite: str, records: Sequence[Record], known: Known) -> Iterator[Sheet]:
    """One row a run, under the name of its instance; and why some have no plan, or went wrong."""
    own = sorted((record for record in records if record.suite == suite), key=lambda record: record.instance)
    several = len({record.seed for record in own}) > 1
    rows, before = [], ""
    for record in own:
        if record.instance != before:
            best = known.get(record.fingerprint, Reference(None, None, None))
            rows.append((record.instance, value_of(record, best.value), "", share_text(gap_of(best)), ""))
            before = record.instance
        name = f"  {label(record)}{f' seed {record.seed}' if several else ''}"
        time = f"{record.runtime_s:.1f} s"
        rows.append(
            (name, value_of(record, record.value), share_text(loss(record, known)), share_text(record.gap), time)
        )
    columns = ("instance, method", "value", "loss", "gap", "time")
    title = f"{suite}: best known of each instance, and what the methods lose against it"
    yield Sheet(title, columns, rows, columns[1:])
    without = [
        (f"{record.instance}, {label(record)}", how_it_ended(record))
        for record in own
        if record.value is None or record.error is not None
    ]
    if without:
        short = [(name, shortened(one_line(why), _NOTE)) for name, why in without]
        yield Sheet(f"{suite}: runs without a plan, and runs that went wrong", ("run", "why"), short)


def values_sheet(suite: str, records: Sequence[Record], known: Known) -> Sheet:
    """One row an instance with a column for each method, of the first seed; values in seconds."""
    methods = list(dict.fromkeys(label(record) for record in records))
    first = {(record.fingerprint, label(record)): record for record in reversed(records)}
    names = dict(sorted(((record.fingerprint, record.instance) for record in records), key=lambda pair: pair[1]))
    rows = []
    for fingerprint, name in names.items():
        best = known.get(fingerprint, Reference(None, None, None))
        cells = [_number(best.value), _number(best.bound), share_text(gap_of(best)), _number(best.trivial_bound)]
        cells += [_cell(first.get((fingerprint, method))) for method in methods]
        rows.append((name, *cells))
    hops = any(record.objective in OBJECTIVES for record in records)
    columns = ("instance", "best known", "bound", "gap", "trivial bound", *methods)
    return Sheet(f"{suite}: values in {'weighted hops' if hops else 'seconds'}", columns, rows, columns[1:])


def losses_sheet(suite: str, summary: Sequence[Row], *, worst_at: bool) -> Sheet:
    """Losses of each method on a suite; ``worst_at`` adds a wide column with the instance of the worst one."""
    rows = []
    for row in summary:
        if row.suite == suite:
            numbers = (share_text(row.median_loss), share_text(row.worst_loss), f"{row.mean_runtime_s:.1f} s")
            where = (row.worst_instance or UNKNOWN,) if worst_at else ()
            rows.append((row.method, f"{row.solved}/{row.runs}", str(row.proved), str(row.errors), *numbers, *where))
    columns = ("method", "plans", "proved", "failed", "median", "worst", "time", *(["worst at"] if worst_at else []))
    title = (
        f"{suite}: losses over the runs with a plan (plans: how many of how many runs); time: geometric mean, shifted "
        "by 1 s, a run without a plan counted with its limit"
    )
    return Sheet(title, columns, rows, columns[1:7])


def bounds_sheet(records: Sequence[Record], known: Known) -> Sheet:
    """How far bounds are from the best known values, per suite."""
    rows = []
    for suite in dict.fromkeys(record.suite for record in records):
        prints = dict.fromkeys(record.fingerprint for record in records if record.suite == suite)
        best = [known[name] for name in prints if name in known]
        ours = [gap for one in best if (gap := gap_of(one)) is not None]
        trivial = [gap for one in best if (gap := relative_gap(one.value, one.trivial_bound)) is not None]
        rows.append((suite, str(len(prints)), *_middle_and_worst(ours), *_middle_and_worst(trivial)))
    columns = ("suite", "instances", "median", "worst", "trivial", "trivial, worst")
    title = "Gaps between the best known value and the bounds: ours (median, worst), and the trivial one"
    return Sheet(title, columns, rows, columns[1:])


def matrix_sheet(records: Sequence[Record], summary: Sequence[Row], known: Known) -> Sheet:
    """One row a suite: losses of all methods beside what the bounds leave open."""
    methods = list(dict.fromkeys(row.method for row in summary))
    cells = {(row.suite, row.method): row for row in summary}
    rows = []
    for name, _, *bounds in bounds_sheet(records, known).rows:
        found = [cells.get((name, method)) for method in methods]
        rows.append((name, *map(_median_and_worst, found), " / ".join(bounds[:2]), " / ".join(bounds[2:])))
    title = "Losses against the best known, median / worst over the runs with a plan (how many, where not all have one)"
    columns = ("suite", *methods, "bound", "trivial bound")
    return Sheet(title, columns, rows, columns[1:])


def profile_sheet(records: Sequence[Record], summary: Sequence[Row]) -> Sheet:
    """Performance profile over all suites: share of runs within a factor of the best known."""
    total: dict[str, int] = {}
    within: dict[str, list[float]] = {}
    for row in summary:
        total[row.method] = total.get(row.method, 0) + row.runs
        so_far = within.get(row.method, [0.0] * len(RATIOS))
        within[row.method] = [old + share * row.runs for old, share in zip(so_far, row.profile, strict=True)]
    rows = [
        (method, str(total[method]), *(f"{100 * count / total[method]:.0f}" for count in counts))
        for method, counts in within.items()
    ]
    columns = ("method", "runs", *(f"{100 * (ratio - 1):.4g}%" for ratio in RATIOS))
    title = "Performance profile: percent of all runs, also those without a plan, that lose at most so much"
    return Sheet(title, columns, rows, columns[1:])


def proofs_sheet(summary: Sequence[Row]) -> Sheet:
    """How many runs proved their plan within so much time."""
    times: dict[str, list[float]] = {}
    runs: dict[str, int] = {}
    for row in summary:
        times.setdefault(row.method, []).extend(row.proofs_s)
        runs[row.method] = runs.get(row.method, 0) + row.runs
    rows = [
        (method, str(runs[method]), *(str(sum(found <= limit for found in all_s)) for limit in _PROOF_TIMES_S))
        for method, all_s in times.items()
    ]
    columns = ("method", "runs", *(f"{limit:g} s" for limit in _PROOF_TIMES_S))
    title = "Proofs (gap at most 0.01 %): runs proved within so much time (all of them: --json)"
    return Sheet(title, columns, rows, columns[1:])


def value_of(record: Record, value: float | None) -> str:
    """A value of the record's objective: a time, or weighted hops."""
    if record.objective in OBJECTIVES:
        return UNKNOWN if value is None else f"{value:.9g}"
    return time_text(value)


def label(record: Record) -> str:
    """A record's method with what is not at its default."""
    return label_of(record.method, record.knobs, record.chunks)


def how_it_ended(record: Record) -> str:
    """Status, or what went wrong, or why there is no plan."""
    if record.error is not None:
        return record.error
    if record.value is None:
        return f"{record.status}: {record.reason or 'no plan'}"
    return f"{record.status} ({record.stop_reason.replace('_', ' ')})"


def _cell(record: Record | None) -> str:
    if record is None:
        return ""
    if record.value is not None:
        return _number(record.value)
    if record.error is not None:
        return "killed" if record.stop_reason == "time_limit" else "failed"
    return "infeasible" if record.status == "infeasible" else "does not run"


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else digits(value)


def _median_and_worst(row: Row | None) -> str:
    if row is None:
        return ""
    count = "" if row.solved == row.runs else f" ({row.solved} of {row.runs})"
    return f"{share_text(row.median_loss)} / {share_text(row.worst_loss)}{count}" if row.solved else f"no plan{count}"


def _middle_and_worst(gaps: Iterable[float]) -> tuple[str, str]:
    found = list(gaps)
    return (share_text(statistics.median(found)), share_text(max(found))) if found else (UNKNOWN, UNKNOWN)
