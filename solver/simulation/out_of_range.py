"""Times and bytes that do not fit the replay's 62 bits, as an error that names the field behind them."""

from __future__ import annotations

from instances.costs import FittedSpec, RooflineSpec
from instances.errors import InputError
from instances.hardware import Die
from instances.instance import Instance
from instances.units import FASTEST
from solver.simulation.network import PICOSECONDS_PER_S
from solver.simulation.program import NO_LIMIT_UNITS
from solver.simulation.range_check import Excess

LONGEST_S = NO_LIMIT_UNITS / PICOSECONDS_PER_S
"""Seconds that fit: 27 days."""
_EASY: dict[str, float] = {
    "peak_flops": FASTEST,
    "hbm_bytes_per_s": FASTEST,
    "gemm_efficiency": 1.0,
    "attention_efficiency": 1.0,
    "hbm_efficiency": 1.0,
    "layer_overhead_s": 0.0,
    "chunk_overhead_s": 0.0,
}
"""Rates with which a die would take next to no time."""
_LONG_S = 1e5
"""A request that works longer on one stage is slow itself; else there are many."""
_MANY_TOKENS = 2**30
_FINE_UNITS = 4096
"""Units of a byte beyond which the widths are odd."""


def too_slow(
    instance: Instance, kind: tuple[int, int, Die, bool], size: int, chunk: float, prefix: float
) -> InputError:
    """What makes a chunk longer than the clock counts: a coefficient, a rate of the die, or its tokens."""
    start, stop, die, _ = kind

    def seconds(on: Die) -> float:
        return float(instance.stage_cost.stage_seconds(on, start, stop, size, chunk, prefix))

    takes = f"layers {start}..{stop - 1} take {seconds(die):.3g} s for {size} x {chunk:.0f} tokens after {prefix:.0f}"
    allowed = f"what fits the replay's clock of {LONGEST_S:.1e} s; {takes}"
    costs = instance.costs
    if isinstance(costs, FittedSpec):
        terms = {
            "chunk_s": costs.chunk_s,
            "prefix_s": costs.prefix_s * prefix,
            "token_s": costs.token_s * chunk,
            "pair_s": costs.pair_s * (2 * prefix + chunk) * chunk,
        }
        name = max(terms, key=lambda term: terms[term])
        return InputError(f"costs.{name}", getattr(costs, name), allowed)
    if not isinstance(costs, RooflineSpec):
        return InputError("costs.rows", f"times of {len(costs.rows or ())} chunks", allowed)
    if seconds(die.model_copy(update=_EASY)) >= LONGEST_S:
        return _too_long(instance, allowed)
    name = min(_EASY, key=lambda rate: seconds(die.model_copy(update={rate: _EASY[rate]})))
    for number, override in enumerate(instance.hardware.dies):
        if instance.hardware.special_dies[override.at] == die and getattr(override, name) is not None:
            return InputError(f"hardware.dies.{number}.{name}", getattr(die, name), allowed)
    return InputError(f"hardware.die.{name}", getattr(die, name), allowed)


def too_many_bytes(instance: Instance, units_per_byte: int) -> InputError:
    """What makes an amount of KV or activations longer than 62 bits."""
    if units_per_byte > _FINE_UNITS:
        widths = {name: getattr(instance.model, name) for name in ("kv_bytes", "activation_bytes")}
        allowed = f"widths that need no units of 1/{units_per_byte} byte to be counted exactly in 62 bits"
        return InputError("model.kv_bytes, model.activation_bytes", widths, allowed)
    allowed = "amounts of KV and activations below 1e18 bytes"
    if max(tokens for tokens, _ in instance.workload.shapes) >= _MANY_TOKENS:
        return _too_long(instance, allowed)
    return InputError("model", instance.model.name, f"sizes with {allowed}")


def beyond_clock(instance: Instance, excess: Excess) -> InputError:
    """What makes all times, or all bytes, of a replay together longer than 62 bits."""
    hardware, allowed = instance.hardware, f"what fits the replay's 62 bits; {excess.says}"
    match excess.cause:
        case "links":
            slow_seam = hardware.seam_bytes_per_s < hardware.link_bytes_per_s
            name = "wafer_link_bytes_per_s" if slow_seam else "link_bytes_per_s"
            return InputError(f"hardware.{name}", getattr(hardware, name), allowed)
        case "host links":
            assert hardware.host is not None
            return InputError("hardware.host.host_bytes_per_s", hardware.host.host_bytes_per_s, allowed)
        case "latency":
            return InputError("hardware.hop_latency_s", hardware.hop_latency_s, allowed)
        case "stalls":
            return InputError("pipeline.serve_fraction", instance.pipeline.serve_fraction, allowed)
        case "compute":
            longest, cached = max(instance.workload.shapes)
            kind = (0, instance.model.layer_count, hardware.die, True)
            tokens = longest - cached
            if isinstance(instance.costs, RooflineSpec | FittedSpec) and _whole_s(instance, kind, tokens) > _LONG_S:
                return too_slow(instance, kind, 1, tokens, cached)
    return _too_much(instance, allowed)


def _whole_s(instance: Instance, kind: tuple[int, int, Die, bool], tokens: int) -> float:
    """Seconds of a request on a die that holds all layers, shared among the stages."""
    start, stop, die, _ = kind
    whole = instance.stage_cost.stage_seconds(die, start, stop, 1, tokens, 0)
    return float(whole) / instance.pipeline.stages


def _too_long(instance: Instance, allowed: str) -> InputError:
    longest = max(instance.workload.shapes)[0]
    if instance.workload.trace is None:
        return InputError("workload.tokens", longest, allowed)
    number = next(i for i, request in enumerate(instance.workload.trace) if request.tokens == longest)
    return InputError(f"workload.trace.{number}.tokens", longest, allowed)


def _too_much(instance: Instance, allowed: str) -> InputError:
    if instance.workload.trace is None:
        return InputError("workload.requests", instance.workload.requests, allowed)
    return InputError("workload.trace", f"{len(instance.workload.trace)} requests", allowed)
