"""``explain``: why an instance has no plan, and what would help."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from formulations.explain.core import Rules
from instances.errors import InputError
from instances.instance import Instance
from solver.explanation.changes import ChangeSearch, first_possible
from solver.explanation.clashes import clash_rows, cores, forbidden_starts, rows_of_findings, rules_of, says
from solver.explanation.fields import Field, fields
from solver.explanation.probe import find_plan
from solver.explanation.result import Change, Clash, Explanation
from solver.limits import Deadline, Limits
from solver.result import Result

FIRST_SHARE = 0.4
"""Share of the time for a plan of the instance as it is."""


def explain(
    instance: Instance, *, limits: Limits | None = None, note: Callable[[str], None] | None = None
) -> Explanation:
    """Whether an instance has a plan of the chunked schedule, and if not, why.

    Rules that no plan can keep together are found, and proved, by an engine, as few as can be; they concern dies, cuts
    and memory whatever the timing. Where there are none but no plan is found either, nothing is proved, and the rules
    that the best failed plan broke are named. Then single fields are changed: up to where the rules clash there is no
    plan, and the first value with a plan that replays is given.

    Parameters
    ----------
    limits
        Of the whole; only ``time_s`` counts, 60 seconds unless given. The answer repeats exactly where time is not up.
    note
        Called with a line at the start of each part of the work.

    Raises
    ------
    InputError
        For an objective that plans cannot be sought for.
    """
    if instance.objective == "max_tokens":
        raise InputError("objective", "max_tokens", "mean_latency, makespan or p95_latency: these can be solved for")
    tell = note or (lambda line: None)
    deadline = Deadline((limits or Limits()).time_s)
    answer = Explanation(
        instance=instance.name,
        fingerprint=instance.fingerprint,
        feasible=False,
        proved=False,
        says="interrupted before anything was known",
        stop_reason="interrupted",
        objective=instance.objective,
        runtime_s=0.0,
    )
    try:
        for known in _answers(instance, deadline, tell):
            answer = known
    except KeyboardInterrupt:
        answer = answer.model_copy(update={"stop_reason": "interrupted"})
    return answer.model_copy(update={"runtime_s": round(deadline.elapsed_s, 3)})


def _answers(instance: Instance, deadline: Deadline, tell: Callable[[str], None]) -> Iterator[Explanation]:
    """What is known after each part of the work; the last one is the answer."""
    known = Explanation(
        instance=instance.name,
        fingerprint=instance.fingerprint,
        feasible=False,
        proved=False,
        says="",
        objective=instance.objective,
        runtime_s=0.0,
    )
    tell("rules that clash")
    rules = rules_of(instance)
    found = list(cores(rules))
    first = None
    if not found:
        tell("a plan")
        first = find_plan(instance, None if deadline.left_s is None else FIRST_SHARE * deadline.left_s)
        if first is not None and first.plan is not None:
            says = "feasible: the plan given here keeps every rule and replays"
            value = first.objective.value
            facts = {"feasible": True, "proved": True, "says": says, "plan": first.plan, "value": value}
            yield known.model_copy(update=facts)
            return
    clash, further, proved = _clash(instance, rules, found, first)
    update = {"proved": proved, "says": _sentence(clash, proved), "clash": clash, "further": further}
    known = known.model_copy(update=update)
    yield known
    for changes, tried in _changes(instance, rules, proved, deadline, tell):
        known = known.model_copy(update={"changes": tuple(changes), "tried": tried})
        yield known
    if deadline.over:
        yield known.model_copy(update={"stop_reason": "time_limit"})


def _clash(
    instance: Instance, rules: Rules, found: list[tuple[str, ...]], first: Result | None
) -> tuple[tuple[Clash, ...], tuple[tuple[Clash, ...], ...], bool]:
    """The clash, further ones, and whether they are proved."""
    if found:
        rows = [clash_rows(instance, rules, core) for core in found]
        return rows[0], tuple(rows[1:]), True
    if first is None:
        return (), (), False
    if first.status == "infeasible":
        rule, _, reason = (first.reason or "").partition(": ")
        named = rule if says(rule) else "chunk_lists"
        where = reason if says(rule) else first.reason or ""
        return (Clash(rule=named, what=says(named), amount=None, unit="", where=where),), (), True
    return rows_of_findings(first.violations), (), False


def _sentence(clash: tuple[Clash, ...], proved: bool) -> str:
    names = ", ".join(dict.fromkeys(row.rule for row in clash))
    if proved:
        return f"infeasible, proved for every plan of the chunked schedule: {names} cannot be kept"
    broken = f"; the best failed plan breaks {names}" if names else ""
    return f"no plan was found, and it is not proved that there is none{broken}"


def _changes(
    instance: Instance, rules: Rules, proved: bool, deadline: Deadline, tell: Callable[[str], None]
) -> Iterator[tuple[list[Change], dict[str, str]]]:
    """Changes that help and fields that do not, after each field."""
    cuts = rules.least_broken("forbidden_cuts")
    changes: list[Change] = []
    tried: dict[str, list[str]] = {}
    todo: list[tuple[Field, int]] = []
    for field in fields(instance, None if cuts is None else forbidden_starts(instance, cuts[1])):
        tell(f"values of {field.name} that are not ruled out")
        first = first_possible(field, _clashes, deadline)
        if isinstance(first, str):
            tried.setdefault(field.name, []).append(first)
        else:
            todo.append((field, first))
    for number, (field, first) in enumerate(todo):
        tell(f"plans with another {field.name}")
        left, weights = deadline.left_s, [other.weight for other, _ in todo[number:]]
        clock = Deadline(None if left is None else left * weights[0] / sum(weights))
        answer = ChangeSearch(proved, clock).smallest(field, first)
        if isinstance(answer, Change):
            changes.append(answer)
        else:
            tried.setdefault(field.name, []).append(answer)
        helped = {change.field for change in changes}
        yield changes, {name: "; ".join(why) for name, why in tried.items() if name not in helped}
    if not todo:
        yield [], {name: "; ".join(why) for name, why in tried.items()}


def _clashes(instance: Instance) -> bool:
    return rules_of(instance).clash()
