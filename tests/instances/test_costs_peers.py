"""The roofline against aiconfigurator 0.12 (SOL mode, B200, bf16, one device): facts measured once, restated here."""

from __future__ import annotations

import pytest

from instances.catalogue import load_model
from instances.costs import RooflineSpec, make_costs
from instances.hardware import Die
from instances.parameters import growth_bytes_per_token

BF16 = Die.parse({"peak_flops": "2.25 PFLOP/s", "hbm_bytes": "180 GiB", "hbm_bytes_per_s": "7.7 TB/s"})

# model, chunk, prefix, total ms, attention ms, KV GiB at prefix + chunk + 1 tokens.
ROWS = [
    ("llama3-70b", 4096, 0, 272.177, 9.774, 1.25),
    ("llama3-70b", 4096, 32768, 428.552, 166.149, 11.2503),
    ("llama3-70b", 2048, 32768, 211.969, 80.631, 10.625),
    ("llama3-70b", 8192, 32768, 876.378, 351.844, 12.5),
    ("llama3-70b", 4096, 98304, 741.302, 478.899, 31.25),
    ("llama3-405b", 4096, 0, 1532.686, 30.788, 1.969),
    ("llama3-405b", 4096, 32768, 2025.267, 523.369, 17.7192),
    ("llama3-405b", 2048, 32768, 1005.21, 253.989, 16.735),
    ("llama3-405b", 8192, 32768, 4111.559, 1108.309, 19.688),
    ("llama3-405b", 4096, 98304, 3010.429, 1508.531, 49.219),
    ("qwen3-235b", 4096, 0, 108.832, 11.485, 0.735),
    ("qwen3-235b", 4096, 32768, 292.572, 195.226, 6.6096),
    ("qwen3-235b", 2048, 32768, 172.915, 94.743, 6.242),
    ("qwen3-235b", 8192, 32768, 572.998, 413.418, 7.344),
    ("qwen3-235b", 4096, 98304, 660.053, 562.707, 18.36),
]


@pytest.mark.parametrize(("name", "chunk", "prefix", "total_ms", "attention_ms", "kv_gib"), ROWS)
def test_totals_attention_and_kv(
    name: str, chunk: int, prefix: int, total_ms: float, attention_ms: float, kv_gib: float
) -> None:
    model = load_model(name)
    cost = make_costs(model, RooflineSpec())
    (kind,) = model.kinds
    attention = model.layer_count * float(cost.layer_seconds(BF16, kind, 1, chunk, prefix).attention)
    assert attention * 1e3 == pytest.approx(attention_ms, rel=5e-4)
    # The peer's total has the output head once. Dense models agree within 0.13 %; for experts it counts other bytes.
    total = float(cost.stage_seconds(BF16, 0, model.layer_count, 1, chunk, prefix, head=True))
    assert total * 1e3 == pytest.approx(total_ms, rel=0.06 if name == "qwen3-235b" else 1.3e-3)
    # The table rounds to its last digit shown.
    kv = growth_bytes_per_token(model, 0, model.layer_count) * (prefix + chunk + 1)
    assert kv / 2**30 == pytest.approx(kv_gib, abs=6e-4)


def test_reference_case_of_the_peers() -> None:
    """Llama-3-70B, 4096 tokens after 32768 at 4.5 PFLOP/s: 560.75 + 373.83 = 934.58 TFLOP in 207.69 ms."""
    die = BF16.model_copy(update={"peak_flops": 4.5e15})
    parts = make_costs(load_model("llama3-70b"), RooflineSpec()).layer_seconds(die, "full-dense", 1, 4096, 32768)
    gemm, attention = 80 * float(parts.gemm), 80 * float(parts.attention)
    assert gemm * 4.5e15 == pytest.approx(560.75e12, rel=1e-5)
    # The peers' hand figure takes ((p+c)^2 - p^2)/2 pairs, without the c/2 of the diagonal: 0.006 % less.
    assert attention * 4.5e15 == pytest.approx(373.83e12, rel=1e-4)
    assert (gemm + attention) * 1e3 == pytest.approx(207.69, abs=0.01)
