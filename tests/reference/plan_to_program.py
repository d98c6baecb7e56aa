"""From an instance and a plan, as plain dicts, to what each wave does: spec sections 1 and 2 in exact fractions.

A witness for the product's lowering: written from the specification's text, without numpy and without an import from
the product. It covers grouped, sliding and latent attention, dense and mixture-of-experts feed-forwards, and fitted
costs. The result has the keys of the worked examples, except that what differs from wave to wave is in ``waves``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tests.reference.program import HOST, exact

Data = Mapping[str, Any]


def lower(instance: Data, plan: Data) -> dict[str, Any]:
    """The program of a plan; every amount and time is a Fraction."""
    requests = _requests(instance["workload"])
    waves = _form_waves(requests, plan["batch"])
    stops = [sum(plan["layers"][: s + 1]) for s in range(len(plan["layers"]))]
    parts = [(stop - count, stop) for stop, count in zip(stops, plan["layers"], strict=True)]
    names = _layer_names(instance["model"])
    stages = [names[start:stop] for start, stop in parts]
    hardware, pipeline = instance["hardware"], instance["pipeline"]
    dies = [_die(hardware, cell) for cell in plan["placement"]]
    return {
        "die_of": plan["placement"],
        "schedule": plan["schedule"],
        "topology": hardware.get("topology", "mesh"),
        "waves": [_wave(instance, plan, stages, dies, wave) for wave in waves],
        "capacity_bytes": [exact(die["hbm_bytes"]) for die in dies],
        "static_bytes": [_static_bytes(instance["model"], plan, stages, s, waves) for s in range(len(stages))],
        "max_in_flight": pipeline["max_in_flight"],
        "serve_fraction": pipeline["serve_fraction"],
        "overlap": pipeline["overlap"],
        "store_and_forward": pipeline["switching"] == "store_and_forward",
        "one_send_per_die": pipeline["one_send_per_die"],
        "routing": pipeline["routing"],
        "integer_ns": pipeline["integer_ns"],
        "rows": hardware["rows"] * hardware["wafers"][0],
        "columns": hardware["columns"] * hardware["wafers"][1],
        "wafer_shape": (hardware["rows"], hardware["columns"]),
        "link_bytes_per_s": hardware["link_bytes_per_s"],
        "wafer_link_bytes_per_s": hardware["wafer_link_bytes_per_s"] or hardware["link_bytes_per_s"],
        "hop_latency_s": hardware["hop_latency_s"],
        "host": hardware["host"],
        "disabled_dies": hardware["disabled_dies"],
        "disabled_links": hardware["disabled_links"],
    }


def _requests(workload: Data) -> list[dict[str, Any]]:
    if workload["trace"] is not None:
        return [dict(row) for row in workload["trace"]]
    row = {"arrival_s": 0, "tokens": workload["tokens"], "cached_tokens": workload["cached_tokens"]}
    return [dict(row) for _ in range(workload["requests"])]


def _form_waves(requests: list[dict[str, Any]], batch: int) -> list[list[dict[str, Any]]]:
    """Sorted by (arrival, index); a new wave starts when the batch is full or the shape changes."""
    order = sorted(range(len(requests)), key=lambda index: (exact(requests[index]["arrival_s"]), index))
    waves: list[list[dict[str, Any]]] = []
    for request in (requests[index] for index in order):
        last = waves[-1] if waves else []
        if not last or len(last) == batch or _shape(last[0]) != _shape(request):
            waves.append([])
        waves[-1].append(request)
    return waves


def _shape(request: Data) -> tuple[int, int]:
    return (request["tokens"], request["cached_tokens"])


def _layer_names(model: Data) -> list[str]:
    return [name for run in model["layers"] for _ in range(run["repeat"]) for name in run["pattern"]]


def _die(hardware: Data, cell: Any) -> dict[str, Any]:
    die = dict(hardware["die"])
    for override in hardware["dies"]:
        if list(override["at"]) == list(cell):
            die.update({key: value for key, value in override.items() if key != "at" and value is not None})
    return die


def _wave(instance: Data, plan: Data, stages: list[list[str]], dies: Sequence[Data], wave: list[Any]) -> dict[str, Any]:
    model, size = instance["model"], len(wave)
    tokens, cached = _shape(wave[0])
    chunks = plan["chunks"][str(tokens - cached)]
    prefixes = [cached + sum(chunks[:i]) for i in range(len(chunks))]
    compute, kv = [], []
    for s, (names, die) in enumerate(zip(stages, dies, strict=True)):
        times, amounts, held = [], [], Fraction(0)
        for i, (chunk, prefix) in enumerate(zip(chunks, prefixes, strict=True)):
            head = s == len(stages) - 1 and i == len(chunks) - 1
            times.append(_stage_s(instance, names, die, size, chunk, prefix, head))
            now = size * sum((_kept_bytes(model, name, prefix + chunk, chunk) for name in names), Fraction(0))
            amounts.append(now - held)
            held = now
        compute.append(times)
        kv.append(amounts)
    spill = []
    for row in plan["spill"]:
        if row["tokens"] and (row.get("shape") is None or tuple(row["shape"]) == (tokens, cached)):
            per_token = size * sum((_growth_bytes(model, name) for name in stages[row["stage"]]), Fraction(0))
            creditor = HOST if row["creditor"] == HOST else row["creditor"]
            sent = row["tokens"] * per_token
            spill.append({"stage": row["stage"], "chunk": row["chunk"], "creditor": creditor, "bytes": sent})
    each = model["hidden"] * exact(model["activation_bytes"])
    return {
        "arrivals_s": [exact(request["arrival_s"]) for request in wave],
        "compute_s": compute,
        "kv_bytes": kv,
        "activation_bytes": [size * chunk * each for chunk in chunks],
        "spill": spill,
    }


def _static_bytes(model: Data, plan: Data, stages: list[list[str]], s: int, waves: list[list[Any]]) -> Fraction:
    """Weights (embedding on stage 0, head and last norm on the last stage) and the largest workspace of all waves.

    A die with two stages, as in a V, has the weights of both, tied tables once, and the larger workspace.
    """
    widths, placement = _widths(model), plan["placement"]
    held = [name for names, die in zip(stages, placement, strict=True) if die == placement[s] for name in names]
    total: Fraction = sum((_weight_bytes(model, name) for name in held), Fraction(0))
    tables = int(model["vocab"] * model["hidden"])
    at_first, at_last = placement[s] == placement[0], placement[s] == placement[-1]
    if model["tied_embeddings"] and at_first and at_last:
        total += tables * max(widths["embedding"], widths["head"])
    else:
        total += tables * (at_first * widths["embedding"] + at_last * widths["head"])
    total += at_last * int(model["hidden"]) * widths["norms"]
    width = max(_active_width(model["kinds"][name]["feed_forward"]) for name in held)
    largest = max(len(wave) * max(plan["chunks"][str(_shape(wave[0])[0] - _shape(wave[0])[1])]) for wave in waves)
    workspace: Fraction = largest * (2 * model["hidden"] + width) * exact(model["activation_bytes"])
    return total + workspace


def _stage_s(instance: Data, names: list[str], die: Data, size: int, chunk: int, prefix: int, head: bool) -> Fraction:
    model, costs = instance["model"], instance["costs"]
    if costs["kind"] == "fitted":
        c0, g, b, a = (exact(costs[key]) for key in ("chunk_s", "prefix_s", "token_s", "pair_s"))
        whole = c0 + size * (g * prefix + b * chunk + a * (2 * prefix * chunk + chunk * chunk))
        return whole * len(names) / len(_layer_names(model))
    seconds = exact(die["chunk_overhead_s"])
    for name in names:
        seconds += _layer_s(model, model["kinds"][name], die, size, chunk, prefix) + exact(die["layer_overhead_s"])
    if head:
        weights = model["hidden"] * model["vocab"]
        seconds += max(2 * size * weights / _gemm(die), weights * _widths(model)["head"] / _hbm(die))
    return seconds


def _gemm(die: Data) -> Fraction:
    return exact(die["peak_flops"]) * exact(die["gemm_efficiency"])


def _hbm(die: Data) -> Fraction:
    return exact(die["hbm_bytes_per_s"]) * exact(die["hbm_efficiency"])


def _widths(model: Data) -> dict[str, Fraction]:
    groups = ("experts", "attention", "dense", "router", "embedding", "head", "norms")
    given = model["weight_bytes"]
    return {group: exact(given[group] if isinstance(given, Mapping) else given) for group in groups}


def _layer_s(model: Data, kind: Data, die: Data, size: int, chunk: int, prefix: int) -> Fraction:
    """gemm_s + vector_s + attention_s of one layer."""
    hidden, new = model["hidden"], size * chunk
    act, widths = exact(model["activation_bytes"]), _widths(model)
    gemm = Fraction(0)
    feed_forward = kind["feed_forward"]
    moved = 2 * new * hidden * act
    projections = _projections(kind["attention"], hidden)
    groups = [(projections, projections * widths["attention"])]
    matrices = 3 if feed_forward["gated"] else 2
    if feed_forward["kind"] == "dense":
        weights = matrices * hidden * feed_forward["width"]
        groups.append((weights, weights * widths["dense"]))
    else:
        experts, top_k = feed_forward["experts"], feed_forward["top_k"]
        router, expert = hidden * experts, matrices * hidden * feed_forward["expert_width"]
        shared = matrices * hidden * feed_forward["shared_width"]
        distinct = experts * (1 - (1 - Fraction(top_k, experts)) ** new)
        read = router * widths["router"] + shared * widths["dense"] + distinct * expert * widths["experts"]
        groups.append((router + shared + top_k * expert, read))
    for active, read in groups:
        gemm += max(2 * new * active / _gemm(die), (read + moved) / _hbm(die))
    vector: Fraction = new * (3 * _active_width(feed_forward) + 8 * hidden) * act / _hbm(die)
    return gemm + vector + _attention_s(model, kind["attention"], die, size, chunk, prefix)


def _projections(attention: Data, hidden: int) -> int:
    heads = attention["heads"]
    if attention["kind"] != "mla":
        return int(hidden * attention["head_dim"] * (2 * heads + 2 * attention["kv_heads"]))
    key, value = attention["qk_nope_head_dim"] + attention["qk_rope_head_dim"], attention["v_head_dim"]
    rank, latent = attention["q_lora_rank"], attention["kv_lora_rank"]
    query = hidden * heads * key if rank is None else hidden * rank + rank * heads * key
    down = hidden * (latent + attention["qk_rope_head_dim"])
    return int(query + down + latent * heads * (attention["qk_nope_head_dim"] + value) + heads * value * hidden)


def _attention_s(model: Data, attention: Data, die: Data, size: int, chunk: int, prefix: int) -> Fraction:
    window = attention.get("window") or 10**12
    pairs = sum(min(prefix + j, window) for j in range(1, chunk + 1))
    if attention["kind"] == "mla":
        nope, value = attention["qk_nope_head_dim"], attention["v_head_dim"]
        per_pair = 2 * attention["heads"] * (nope + attention["qk_rope_head_dim"] + value)
        flops = per_pair * pairs + 2 * prefix * attention["kv_lora_rank"] * attention["heads"] * (nope + value)
    else:
        flops = 4 * attention["heads"] * attention["head_dim"] * pairs
    span = min(prefix + chunk, window + chunk)
    rate = exact(die["peak_flops"]) * exact(die["attention_efficiency"])
    return max(Fraction(size * flops) / rate, Fraction(size * span) * _token_bytes(model, attention) / _hbm(die))


def _token_bytes(model: Data, attention: Data) -> Fraction:
    if attention["kind"] == "mla":
        elements = attention["kv_lora_rank"] + attention["qk_rope_head_dim"]
    else:
        elements = 2 * attention["kv_heads"] * attention["head_dim"]
    return int(elements) * exact(model["kv_bytes"])


def _kept_bytes(model: Data, name: str, tokens: int, chunk: int) -> Fraction:
    """A layer's share of K(i) for one sequence: all tokens so far, or min(P, window + c)."""
    attention = model["kinds"][name]["attention"]
    kept = min(tokens, attention["window"] + chunk) if attention["kind"] == "sliding" else tokens
    return kept * _token_bytes(model, attention)


def _growth_bytes(model: Data, name: str) -> Fraction:
    """What a token of full or latent attention leaves for good: the part that may be spilled."""
    attention = model["kinds"][name]["attention"]
    return Fraction(0) if attention["kind"] == "sliding" else _token_bytes(model, attention)


def _active_width(feed_forward: Data) -> int:
    if feed_forward["kind"] == "dense":
        return int(feed_forward["width"])
    return int(feed_forward["shared_width"] + feed_forward["top_k"] * feed_forward["expert_width"])


def _weight_bytes(model: Data, name: str) -> Fraction:
    """One layer's weights: matrices by group; norms beside them, for latent attention those of its two latents too."""
    kind, hidden, widths = model["kinds"][name], model["hidden"], _widths(model)
    attention, feed_forward = kind["attention"], kind["feed_forward"]
    matrices = 3 if feed_forward["gated"] else 2
    norms = kind["norms"] * hidden
    if attention["kind"] == "mla":
        norms += (attention["q_lora_rank"] or 0) + attention["kv_lora_rank"]
    counts = {"attention": _projections(attention, hidden), "norms": norms}
    if feed_forward["kind"] == "dense":
        counts["dense"] = matrices * hidden * feed_forward["width"]
    else:
        counts["dense"] = matrices * hidden * feed_forward["shared_width"]
        counts["router"] = hidden * feed_forward["experts"]
        counts["experts"] = feed_forward["experts"] * matrices * hidden * feed_forward["expert_width"]
    return sum((int(count) * widths[group] for group, count in counts.items()), Fraction(0))
