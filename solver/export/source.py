"""What every export starts from: a result file, replayed once more with all its events kept."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass

from instances.errors import InfeasibleError, InputError
from instances.instance import Instance
from instances.plan import Plan
from solver.replaying import simulate
from solver.result import Result
from solver.simulation.engine import Events, Run
from solver.simulation.program import Program


@dataclass(frozen=True, eq=False)
class Source:
    """A plan, its program and its traced run, which came to its end.

    Parameters
    ----------
    origin
        Where it comes from, for the metadata of exported files: version, fingerprint, name of the instance, method.
    """

    instance: Instance
    plan: Plan
    program: Program
    run: Run
    origin: dict[str, str]

    @property
    def events(self) -> Events:
        """What the run saw."""
        return events_of(self.run)


def replayed(result: Result) -> Source:
    """Replay the plan of a result; nothing but the result is needed, the instance is inside.

    Raises
    ------
    InputError
        If the result holds no plan, or its parts do not belong together.
    InfeasibleError
        If the plan breaks a rule or deadlocks.
    """
    plan = result.plan
    if plan is None:
        raise InputError("plan", None, "a result that holds a plan")
    instance = Instance.read(result.instance)
    for field, value in (("fingerprint", result.fingerprint), ("plan.instance", plan.instance)):
        if value != instance.fingerprint:
            raise InputError(field, value, f"the fingerprint of the instance in the file ({instance.fingerprint})")
    replay = simulate(instance, plan, traced=True)
    if replay.deadlock:
        raise InfeasibleError("deadlock", replay.reason or "tasks remain")
    origin = {
        "waferplan_version": _version(),
        "fingerprint": instance.fingerprint,
        "instance": instance.name,
        "method": result.method,
    }
    return Source(instance, plan, replay.program, replay.run, origin)


def events_of(run: Run) -> Events:
    """Events of a traced run.

    Raises
    ------
    ValueError
        If the run was not traced.
    """
    if run.events is None:
        raise ValueError("this run was not traced; use run(program, traced=True)")
    return run.events


def _version() -> str:
    try:
        return importlib.metadata.version("waferplan")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
