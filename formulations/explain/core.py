"""The rules that cannot be kept together, as few as can be: a core from the engine without the rules it can spare."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from formulations.explain.cpsat import Soft, build, memory_of, soften, split_of
from formulations.explain.problem import RULES, ClashProblem
from formulations.explain.uniform import clash_of_equal_dies
from formulations.interface import Engine, EngineLimits, EngineOutcome

MOST_CELLS = 100_000
"""Stages times layers times kinds of dies above which no engine is asked: stating the model alone takes seconds."""


class Rules:
    """Questions about sets of rules of one problem, answered by an engine for CP-SAT models.

    A question that is too large, or that the engine does not answer within its limits, counts as "they can be kept":
    only proofs count.
    """

    def __init__(self, problem: ClashProblem, engine: Engine, limits: EngineLimits) -> None:
        self.problem, self._engine, self._limits = problem, engine, limits
        kinds = sum(len(group.memories) for group in problem.groups)
        self.too_large = problem.stages * problem.layers * max(1, kinds) > MOST_CELLS

    def about(self, problem: ClashProblem) -> Rules:
        """The same questions about another problem."""
        return Rules(problem, self._engine, self._limits)

    def clash(self, kept: Collection[str] = RULES) -> bool:
        """Whether it is proved that no plan keeps these rules."""
        known = clash_of_equal_dies(self.problem, kept)
        if known is not None:
            return known
        return not self.too_large and self._ask(build(self.problem, kept).model).status == "infeasible"

    def core(self, among: Collection[str] = RULES) -> tuple[str, ...] | None:
        """Rules that clash, in the order of ``RULES``, each of which the others need for it; None if none do.

        The engine names assumptions that suffice; then every rule that the rest clashes without is left out. Where
        weights and workspace alone do not fit, ``capacity_at_rest`` says more than ``memory_admission``.
        """
        if self.too_large:
            core = list(among) if self.clash(among) else []
        else:
            found = self._ask(build(self.problem, among, assume=True).model)
            named = [rule for rule in RULES if rule in found.core] or list(among)
            core = named if found.status == "infeasible" else []
        if not core or not self.clash(core):
            return None
        sharper = [rule for rule in RULES if rule in {*core, "capacity_at_rest"} - {"memory_admission"}]
        if "memory_admission" in core and "capacity_at_rest" in among and self.clash(sharper):
            core = sharper
        for rule in list(core):
            rest = [other for other in core if other != rule]
            if self.clash(rest):
                core = rest
        return tuple(core)

    def least_broken(self, rule: Soft, kept: Collection[str] = RULES) -> tuple[int, tuple[int, ...]] | None:
        """By how much one rule has to be broken where the others are kept, and a split that breaks it by no more.

        None where that is not proved.
        """
        if self.too_large:
            return None
        model = build(self.problem, [other for other in kept if other != rule])
        soften(model, rule)
        found = self._ask(model.model)
        if found.status != "optimal" or found.value is None:
            return None
        return round(found.value), split_of(model, found)

    def example(self, kept: Collection[str]) -> tuple[tuple[int, ...], tuple[float, ...]] | None:
        """A split that keeps the rules, and the memory of each stage's die."""
        if self.too_large:
            return None
        model = build(self.problem, kept)
        found = self._ask(model.model)
        return (split_of(model, found), memory_of(model, found)) if found.has_values else None

    def _ask(self, model: Any) -> EngineOutcome:
        found = self._engine(model, self._limits)
        if found.stop_reason == "interrupted":
            raise KeyboardInterrupt
        return found
