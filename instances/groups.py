"""Tensor-parallel groups: several accelerators that work as one die (spec section 1, "Hardware").

A group of ``degree`` neighbours in a row splits every matrix and the KV heads evenly, so its FLOPs, memory and memory
bandwidth are theirs together. Each of them passes its share of the activations on to its counterpart in the next group,
so links count together as well. What the group spends on its own all-reduces is no part of this: it has to be in the
efficiencies.
"""

from __future__ import annotations

from typing import Any

from instances.errors import InputError
from instances.hardware import Hardware
from instances.layers import FullAttention, LatentAttention, SlidingAttention
from instances.model import Model

_DIE = ("peak_flops", "hbm_bytes", "hbm_bytes_per_s")
_HOST = ("host_bytes", "host_bytes_per_s")


def tensor_parallel(hardware: Hardware, degree: int) -> Hardware:
    """The hardware with each ``degree`` dies of a row as one.

    Raises
    ------
    InputError
        If the columns of a wafer do not divide into groups, or single dies or links are disabled or differ: a group has
        no part that is missing or slower.
    """
    if degree == 1:
        return hardware
    if degree < 1 or hardware.columns % degree:
        raise InputError("tp", degree, f"a divisor of the {hardware.columns} dies in a row (columns of a wafer)")
    for field in ("disabled_dies", "disabled_links", "dies"):
        if getattr(hardware, field):
            raise InputError(f"hardware.{field}", len(getattr(hardware, field)), "none: groups are of like, whole dies")
    changes: dict[str, Any] = {
        "name": None if hardware.name is None else f"{hardware.name}-tp{degree}",
        "source": " ".join(
            part for part in (hardware.source, f"Groups of {degree} in tensor parallel as one die.") if part
        ),
        "columns": hardware.columns // degree,
        "tensor_parallel": hardware.tensor_parallel * degree,
        "link_bytes_per_s": hardware.link_bytes_per_s * degree,
        "die": hardware.die.model_copy(update=_scaled(hardware.die, _DIE, degree)),
    }
    if hardware.wafer_link_bytes_per_s is not None:
        changes["wafer_link_bytes_per_s"] = hardware.wafer_link_bytes_per_s * degree
    if hardware.host is not None:
        changes["host"] = hardware.host.model_copy(update=_scaled(hardware.host, _HOST, degree))
    return hardware.model_copy(update=changes)


def check_heads(model: Model, degree: int, *, kv_stated: bool = False) -> None:
    """Refuse groups over which the heads of a model do not divide, or that would keep copies of KV unawares.

    Engines split query heads evenly. Where there are fewer KV heads than members, each head is kept by several of
    them, and the latent of MLA by all. The bytes of a token's KV have to say so; ``kv_stated`` means that they do.

    Raises
    ------
    InputError
        Naming the model's heads, and the bytes that count the copies.
    """
    for name in dict.fromkeys(model.layer_kinds):
        match model.kinds[name].attention:
            case FullAttention() | SlidingAttention() as grouped:
                heads, kept = grouped.heads, grouped.kv_heads
            case LatentAttention() as mla:
                heads, kept = mla.heads, 1
            case _:
                continue
        if heads % degree:
            raise InputError("tp", degree, f"a divisor of the {heads} heads of {name} layers")
        if kept % degree and not kv_stated:
            what = "1 latent" if isinstance(model.kinds[name].attention, LatentAttention) else f"{kept} KV heads"
            copies = f"{model.kv_bytes * degree / kept:g}" if degree % kept == 0 else "the bytes with them"
            advice = f"to count the copies in a group, state kv_bytes (--kv-bytes) {copies}"
            raise InputError("tp", degree, f"a divisor of the {what} of {name} layers; {advice}")


def _scaled(part: Any, names: tuple[str, ...], degree: int) -> dict[str, float]:
    return {name: degree * getattr(part, name) for name in names}
