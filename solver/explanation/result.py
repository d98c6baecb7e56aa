"""What ``explain`` answers, in its published form."""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import Field

from instances.base import Document
from instances.plan import Plan


class Clash(Document):
    """A rule of the clash: by how much it cannot be kept beside the others, and where that shows.

    ``amount`` is None where it is not known.
    """

    rule: str
    what: str
    amount: float | None
    unit: str
    where: str


class Change(Document):
    """A change of one field with which a plan was found, and replayed.

    Attributes
    ----------
    before, to
        Values of the field; ``from`` in JSON.
    unit, step
        Of numbers; ``to`` is a whole number of steps away from values that are known to fail.
    proved_minimal
        Whether it is proved that no plan exists for any smaller change of this field (by whole steps).
    no_plan_at
        The closest value for which it is proved that no plan exists; None where that is proved for none.
    value
        Objective in seconds of the plan found.
    """

    field: str
    before: Any
    to: Any
    unit: str
    step: float | None
    proved_minimal: bool
    no_plan_at: Any
    value: float
    says: str


class Explanation(Document):
    """Whether an instance has a plan of the chunked schedule, and if none is known, why.

    Attributes
    ----------
    feasible
        Whether a plan was found, checked and replayed.
    proved
        Whether the answer is proved: by that plan, or by rules that clash whatever the timing. Where it is not, no plan
        was found within the limits of the search.
    clash
        Rules that cannot be kept together, as few as can be; unproved, the rules that the best failed plan broke.
    further
        Further sets of rules that clash, none of them in another set.
    changes
        Verified changes of one field each.
    tried
        Fields whose change did not help, or was not tried, and why.
    """

    instance: str
    fingerprint: str
    feasible: bool
    proved: bool
    says: str
    clash: tuple[Clash, ...] = ()
    further: tuple[tuple[Clash, ...], ...] = ()
    changes: tuple[Change, ...] = ()
    tried: dict[str, str] = Field(default_factory=dict)
    plan: Plan | None = None
    objective: str
    value: float | None = None
    stop_reason: Literal["done", "time_limit", "interrupted"] = "done"
    runtime_s: float

    def to_dict(self) -> dict[str, Any]:
        """Plain data of the published form."""
        data = self.model_dump(mode="json")
        data["changes"] = [
            {("from" if key == "before" else key): value for key, value in change.items()} for change in data["changes"]
        ]
        return data

    def to_json(self) -> str:
        """JSON text; unknown numbers are null."""
        return json.dumps(self.to_dict(), indent=1)
