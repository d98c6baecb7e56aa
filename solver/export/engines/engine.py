"""What an export needs to know of an engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from instances.instance import Instance
from solver.export.engines.splits import vpp_split


@dataclass(frozen=True)
class Target:
    """An engine.

    Attributes
    ----------
    predictor
        Its chunk predictor, as ``Chunker`` names them; empty for a static size alone.
    page
        Tokens of a KV page or block with the flags that are exported.
    split
        Its own layer split of so many layers over so many stages.
    deepens
        Whether more chunks than one a stage can be in flight.
    v_shaped
        Whether it runs V-shaped schedules.
    any_node
        Whether it can be told the node of each rank; otherwise nodes hold equal runs of ranks.
    start
        How its files are used, for the how-to.
    notes, dynamic_notes, v_notes
        What it does not do as planned: always, with chunks sized by its predictor, in V-shaped schedules.
    """

    name: str
    predictor: str
    page: int
    split: Callable[[int, int], tuple[int, ...]]
    start: str
    notes: tuple[str, ...] = ()
    dynamic_notes: tuple[str, ...] = ()
    v_notes: tuple[str, ...] = ()
    deepens: bool = False
    v_shaped: bool = False
    any_node: bool = False

    def windows(self, instance: Instance, *, v_shaped: bool) -> tuple[int, ...]:
        """Windows on chunks in flight to try: one a stage, which no engine goes below, and up to two.

        Deeper ones never exceed the instance's own window. In a V its one queue holds one chunk more than dies.
        """
        stages, given = instance.pipeline.stages, instance.pipeline.max_in_flight
        if v_shaped:
            return (stages + 1,)
        more = [2**step for step in range(stages.bit_length()) if 2**step <= stages] if self.deepens else []
        return (stages, *(stages + extra for extra in more if given is None or stages + extra <= given))

    def own_layers(self, layers: int, stages: int, *, v_shaped: bool) -> tuple[int, ...]:
        """The split that the engine makes unless told otherwise."""
        return vpp_split(layers, stages) if v_shaped else self.split(layers, stages)
