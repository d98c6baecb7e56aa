"""Time to first token of Qwen3-235B-A22B-FP8 on 32 H20 beside SGLang's: ``python -m tests.performance.h20``.

LMSYS blog of 15 January 2026 ("Chunked pipeline"), table 1: PP8 x TP4, dynamic chunks. The efficiencies of matrix
products and of attention are fitted to two lengths, the other two are predicted: by the replay, in which the pipeline
of eight stages fills first, and without filling, as if all 32 worked on every chunk together.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from instances.catalogue import load_hardware, load_model
from instances.groups import tensor_parallel
from instances.instance import Instance
from instances.pipeline import balanced_layers
from instances.plan import Plan
from solver import simulate
from solver.policies.dcpp.lists import Predictor

PUBLISHED_S = {131072: 10.54, 262144: 32.68, 524288: 114.33, 1048576: 420.91}
PAIRS = ((131072, 1048576), (131072, 524288), (262144, 1048576), (131072, 262144))
FP8_FLOPS = 296e12
BF16_FLOPS = 148e12
STAGES, GROUP, GROUPS_PER_NODE = 8, 4, 2
BASE_TOKENS, SMOOTHING = 18432, 0.8
"""What the blog's text gives for this model: --chunked-prefill-size and the smooth factor."""
PAGE = 64
FP8_BYTES = 1 + 4 / 128**2


@dataclass(frozen=True)
class Efficiencies:
    """Shares of the fp8 peak; attention runs in bf16, whose peak is half of that."""

    gemm: float
    attention: float


def instance(tokens: int, share: Efficiencies) -> Instance:
    """One request on a row of eight groups of four H20, two groups in a node."""
    single = load_hardware("h20")
    die = single.die.model_copy(
        update={"peak_flops": FP8_FLOPS, "gemm_efficiency": share.gemm, "attention_efficiency": share.attention}
    )
    groups = tensor_parallel(single.model_copy(update={"die": die}), GROUP)
    nodes = groups.model_copy(update={"columns": GROUPS_PER_NODE, "wafers": (1, STAGES // GROUPS_PER_NODE)})
    model = load_model("qwen3-235b").with_bytes({"experts": FP8_BYTES, "attention": FP8_BYTES, "dense": FP8_BYTES})
    document = {
        "name": f"qwen3-235b-fp8-pp8-tp4-h20-{tokens}",
        "hardware": nodes.model_dump(mode="json"),
        "model": model.model_dump(mode="json"),
        "workload": {"requests": 1, "tokens": tokens},
        "pipeline": {"stages": STAGES, "chunk_quantum": PAGE, "max_chunks": 1024, "max_batch": 1},
    }
    return Instance.read(document)


def chunk_list(stated: Instance, tokens: int) -> list[int]:
    """What SGLang's predictor makes of the times of the first stage."""
    layers = balanced_layers(stated.model.layer_count, STAGES)
    return Predictor(stated, layers, 1, SMOOTHING, PAGE).sglang((tokens, 0), BASE_TOKENS, None)


def replayed_s(tokens: int, share: Efficiencies) -> float:
    """Makespan of one request in the replay."""
    stated = instance(tokens, share)
    plan = Plan(
        instance=stated.fingerprint,
        batch=1,
        layers=balanced_layers(stated.model.layer_count, STAGES),
        placement=tuple((0, stage) for stage in range(STAGES)),
        chunks={str(tokens): tuple(chunk_list(stated, tokens))},
    )
    metrics = simulate(stated, plan).metrics
    assert metrics is not None
    return metrics.makespan_s


def unfilled_s(tokens: int, share: Efficiencies) -> float:
    """Work of all stages over their number: no stage ever waits."""
    stated = instance(tokens, share)
    chunks = np.array(chunk_list(stated, tokens))
    before = np.cumsum(chunks) - chunks
    whole = stated.stage_cost.stage_seconds(stated.hardware.die, 0, stated.model.layer_count, 1, chunks, before)
    return float(whole.sum()) / STAGES


Predict = Callable[[int, Efficiencies], float]


def fitted(lengths: Sequence[int], predict: Predict = replayed_s) -> Efficiencies:
    """Efficiencies that give the published times at two lengths; Newton's steps in their inverses, in which times are
    all but linear."""
    wanted = np.array([PUBLISHED_S[tokens] for tokens in lengths])
    inverse = np.array([4.0, 4.0])
    for _ in range(6):
        here = _times(predict, lengths, inverse)
        slopes = [(_times(predict, lengths, inverse + step) - here) / 0.2 for step in 0.2 * np.eye(2)]
        inverse = np.maximum(inverse + np.linalg.solve(np.array(slopes).T, wanted - here), 1.0)
        if np.abs(_times(predict, lengths, inverse) / wanted - 1).max() < 1e-4:
            break
    return _shares(inverse)


def _times(predict: Predict, lengths: Sequence[int], inverse: np.ndarray) -> np.ndarray:
    return np.array([predict(tokens, _shares(inverse)) for tokens in lengths])


def _shares(inverse: np.ndarray) -> Efficiencies:
    return Efficiencies(gemm=float(1 / inverse[0]), attention=float(1 / inverse[1]))


def main() -> None:
    """Print one Markdown row for each pair of lengths to fit on."""
    lengths = list(PUBLISHED_S)
    header = ["fitted on", "GEMM of fp8 peak", "attention of bf16 peak", *(f"{n // 1024}K" for n in lengths)]
    sys.stdout.write(f"| {' | '.join(header)} |\n| --- |{' ---: |' * (len(header) - 1)}\n")
    sys.stdout.write(f"| published | | | {' | '.join(f'{PUBLISHED_S[n]:.2f} s' for n in lengths)} |\n")
    for pair in PAIRS:
        sys.stdout.write(f"| {_row(pair, replayed_s)} |\n")
    found = [fitted(pair).gemm for pair in PAIRS]
    sys.stdout.write(f"| without filling, {_row(PAIRS[0], unfilled_s)} |\n")
    whole = fitted(PAIRS[0], unfilled_s)
    sys.stdout.write(
        "\nWhere all that grows with the tokens falls to matrix products, their implied efficiency is implausibly\n"
        f"low: {whole.gemm:.0%} of the fp8 peak. All-reduces in groups, unbalanced experts, quantisation and filling\n"
        f"of the pipeline are in it. With the filling replayed the pairs give {min(found):.0%} to {max(found):.0%}:\n"
        "it is poorly determined.\n"
    )


def _row(pair: tuple[int, int], predict: Predict) -> str:
    share = fitted(pair, predict)
    cells = [" and ".join(f"{n // 1024}K" for n in pair)]
    cells += [f"{share.gemm:.3f}", f"{share.attention * FP8_FLOPS / BF16_FLOPS:.3f}"]
    for tokens in PUBLISHED_S:
        seconds = predict(tokens, share)
        cells.append(f"{seconds:.2f} s ({seconds / PUBLISHED_S[tokens] - 1:+.1%})")
    return " | ".join(cells)


if __name__ == "__main__":
    main()
