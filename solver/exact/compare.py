"""The heuristics beside the exact search: a start that may be better, and rows for the comparison table."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from instances.plan import Plan
from solver.incumbent import Incumbent
from solver.method import Method
from solver.policies.registry import POLICIES
from solver.result import Compared
from solver.search import Search

VARIANTS = ("mbkr-only", "lbcp-only", "head-to-tail")
"""Parts of MOCAP, and MOCAP with other pairs: run only where all methods are to be compared."""
MOST_S = 15.0
"""Seconds for one heuristic at most."""


def compare(search: Search) -> None:
    """Run every policy in scope with its default knobs and the search's seed; note its value, or why it has none."""
    policies = [
        policy
        for policy in POLICIES
        if not set(policy.schedules).isdisjoint(search.schedules)
        # Where the plain schedule has no plan, what its policies replay would break the rule that says so.
        and (search.structural is None or "chunked" not in policy.schedules)
        and (policy.name not in VARIANTS or search.knobs["compare"] == "all")
    ]
    runs: list[tuple[Method, dict[str, str]]] = [(policy, {}) for policy in policies]
    runs += [
        (policy, {"batch": "best"})
        for policy in policies
        if "batch" in policy.knobs and policy.knobs["batch"].default != "best"
    ]
    for number, (policy, changes) in enumerate(runs):
        name = " ".join([policy.name, *(f"{knob}={value}" for knob, value in changes.items())])
        if search.deadline.over:
            search.compared.append(Compared(method=name, value=None, note="not run: time was up"))
            continue
        search.note(name)
        deadline = search.deadline.part(1.0 / (len(runs) - number + 1), MOST_S)
        own = replace(
            search,
            incumbent=Incumbent(search.evaluator, deadline, scope=search.incumbent.scope),
            deadline=deadline,
            rng=np.random.default_rng(search.seed),
            knobs=policy.settings(changes),
            details={},
            failed=None,
        )
        answer = policy.run(own) or own.incumbent.plan
        row = _row(own, name, answer)
        search.compared.append(row)
        search.incumbent.skip(own.incumbent.too_long_s)
        if answer is not None and row.value is not None:
            search.incumbent.keep(answer, row.value)


def _row(own: Search, name: str, answer: Plan | None) -> Compared:
    stopped = "stopped by its share of the time" if own.deadline.over else ""
    if answer is None:
        return Compared(
            method=name, value=None, note="; ".join(part for part in (own.why_not_briefly(), stopped) if part)
        )
    chunks = max(len(sizes) for sizes in answer.chunks.values())
    best = own.incumbent
    value = best.value if answer is best.plan else own.evaluator.value(answer)
    return Compared(method=name, value=value, chunks=chunks, batch=answer.batch, note=stopped)
