"""The 2N parts of a V: what the instance says about them, and why there may be no V at all (spec section 3)."""

from __future__ import annotations

from itertools import accumulate

from formulations.structure import islands
from instances.instance import Instance
from instances.pipeline import balanced_layers

Part = tuple[int, int]
"""First layer of a part, and the one behind its last."""


def fixed_parts(instance: Instance) -> tuple[int, ...] | None:
    """Layers of the 2N parts where the instance decides them: balanced over 2N parts. None where they are free.

    A list of N numbers says nothing about 2N parts (see `virtual_reason`).
    """
    if instance.pipeline.layers == "free":
        return None
    return balanced_layers(instance.model.layer_count, 2 * instance.pipeline.stages)


def virtual_reason(instance: Instance) -> str | None:
    """Why no V-shaped plan exists whatever is decided; None if there is no such reason."""
    pipeline, layers = instance.pipeline, instance.model.layer_count
    parts = 2 * pipeline.stages
    if isinstance(pipeline.layers, tuple):
        return (
            f"layers_given: the instance gives {pipeline.stages} stages their layers, and a V has {parts} parts, two on"
            " each die; with layers balanced or free there may be one"
        )
    if layers < parts:
        return f"stage_nonempty: a V has {parts} parts, the model {layers} layers"
    most = len(islands(instance)[0])
    if most < pipeline.stages:
        return f"placement_connected: {pipeline.stages} dies are needed, and links join at most {most} enabled ones"
    forbidden = set(pipeline.forbidden_cuts)
    split = fixed_parts(instance)
    if split is None:
        allowed = layers - 1 - len(forbidden)
        return None if allowed >= parts - 1 else f"forbidden_cuts: {parts - 1} cuts are needed, and {allowed} allowed"
    clash = sorted(forbidden & set(list(accumulate(split))[:-1]))
    return f"forbidden_cuts: the balanced split over {parts} parts cuts at layer {clash[0]}" if clash else None


def ranges(split: tuple[int, ...]) -> list[Part]:
    """The layers of each part."""
    return [(stop - count, stop) for stop, count in zip(accumulate(split), split, strict=True)]
