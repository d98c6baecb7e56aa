"""Sentences about instances, plans and results."""

from __future__ import annotations

from collections.abc import Iterator

from instances.costs import FittedSpec, RooflineSpec
from instances.instance import Instance
from instances.numbers import byte_text, count_text, given_time_text
from instances.plan import Plan

STATUS = {
    "optimal": "optimal: the gap is closed",
    "feasible": "feasible: it runs, a better one may exist",
    "infeasible": "infeasible: no plan exists",
    "unknown": "unknown: no plan was found, and no proof that there is none",
}
STOPS = {
    "proved": "proved",
    "gap": "the gap asked for was reached",
    "time_limit": "time limit",
    "iterations": "the method came to its end",
    "interrupted": "interrupted",
    "error": "an error",
}


def asked(instance: Instance) -> str:
    """The task in two sentences."""
    pipeline, workload = instance.pipeline, instance.workload
    if workload.trace is None:
        requests = f"{count_text(workload.requests)} requests of {count_text(workload.tokens)} tokens"
        if workload.cached_tokens:
            requests += f", {count_text(workload.cached_tokens)} of them cached"
    else:
        sizes = [request.tokens for request in workload.trace]
        requests = f"a trace of {len(sizes)} requests of {count_text(min(sizes))} to {count_text(max(sizes))} tokens"
    return (
        f"Prefill {requests} with {instance.model.name} ({instance.model.layer_count} layers) in "
        f"{pipeline.stages} pipeline stages on {mesh_words(instance)}. Objective: least "
        f"{instance.objective.replace('_', ' ')}."
    )


def mesh_words(instance: Instance) -> str:
    """The grid, its wafers, what is dead in it."""
    hardware = instance.hardware
    text = f"a {hardware.rows}×{hardware.columns} {hardware.topology} of dies"
    if hardware.wafers != (1, 1):
        text = f"{hardware.wafers[0]}×{hardware.wafers[1]} wafers, each {text}"
    dead = [
        f"{len(things)} dead {name if len(things) == 1 else names}"
        for name, names, things in (
            ("die", "dies", hardware.disabled_dies),
            ("link", "links", hardware.disabled_links),
        )
        if things
    ]
    return f"{text} ({', '.join(dead)})" if dead else text


def decided(plan: Plan) -> str:
    """The plan in two sentences."""
    counts = sorted(len(sizes) for sizes in plan.chunks.values())
    chunks = f"{counts[0]}" if counts[0] == counts[-1] else f"{counts[0]} to {counts[-1]}"
    batch = "one request at a time" if plan.batch == 1 else f"batches of {plan.batch} requests"
    layers = f"{min(plan.layers)}" if len(set(plan.layers)) == 1 else f"{min(plan.layers)} to {max(plan.layers)}"
    layers += " layer" if max(plan.layers) == 1 else " layers"
    plural = "chunk" if counts[-1] == 1 else "chunks"
    return f"{plan.schedule} schedule, {batch}, {chunks} {plural} a request, {layers} a stage; {spill(plan)}."


def spill(plan: Plan) -> str:
    """How much KV is kept elsewhere."""
    rows = [row for row in plan.spill if row.tokens]
    if not rows:
        return "every stage keeps its own KV"
    hosts = sum(row.tokens for row in rows if row.creditor == "host")
    lent = sum(row.tokens for row in rows) - hosts
    links = len({(row.stage, row.creditor) for row in rows if row.creditor != "host"})
    parts = [f"KV of {count_text(lent)} stage-tokens is kept at other dies ({links} lending links)"] if lent else []
    parts += [f"KV of {count_text(hosts)} stage-tokens is kept at the hosts"] if hosts else []
    return " and ".join(parts)


def assumptions(instance: Instance) -> Iterator[str]:
    """What the numbers rest on."""
    hardware, pipeline = instance.hardware, instance.pipeline
    die = hardware.die
    if isinstance(instance.costs, RooflineSpec):
        yield (
            f"Chunk times come from a roofline of the layers' shapes: {byte_text(die.peak_flops, 'FLOP/s')} a die at "
            f"efficiencies of {die.gemm_efficiency:g} (matrix products) and {die.attention_efficiency:g} (attention), "
            f"{byte_text(die.hbm_bytes_per_s)}/s of memory bandwidth at {die.hbm_efficiency:g}, "
            f"{given_time_text(die.layer_overhead_s)} a layer and {given_time_text(die.chunk_overhead_s)} a chunk on "
            "top."
        )
    else:
        kind = "a fit to measurements" if isinstance(instance.costs, FittedSpec) else "a table of measurements"
        yield f"Chunk times come from {kind} of the whole model, shared among the stages by their layers."
    model = instance.model
    yield (
        f"Weights take {model.weight_bytes:g}, KV {model.kv_bytes:g} and activations {model.activation_bytes:g} bytes "
        "a number."
    )
    seam = hardware.wafer_link_bytes_per_s
    between = f", between wafers {byte_text(seam)}/s" if seam is not None else ""
    switching = pipeline.switching.replace("_", "-")
    yield (
        f"A link carries {byte_text(hardware.link_bytes_per_s)}/s each way{between}, "
        f"{given_time_text(hardware.hop_latency_s)} a hop; links serve first in, first out, {switching}, "
        f"routes {pipeline.routing}."
    )
    yield (
        f"Serving a fetch stops the creditor's compute for {100 * pipeline.serve_fraction:g} % of the transfer; "
        "fetches " + ("overlap with the reader's compute." if pipeline.overlap else "come before the reader's compute.")
    )
    host = hardware.host
    if host is not None:
        yield f"Every die has {byte_text(host.host_bytes)} of host memory behind {byte_text(host.host_bytes_per_s)}/s."
    if instance.workload.trace is None:
        yield "All requests are there at time 0; a latency counts from there, waiting included."
    else:
        yield "Latencies count from each request's own arrival."
