"""Tensor-parallel groups as one die, and the accelerators of the catalogue in nodes."""

from __future__ import annotations

import pytest

from instances.catalogue import load_hardware, load_model
from instances.errors import InputError
from instances.groups import check_heads, tensor_parallel
from instances.hardware import DieOverride, Host

# Dense bf16 rate, memory, its bandwidth, link to a neighbour each way.
ACCELERATORS = {
    "h20": (148e12, 96e9, 4e12, 450e9),
    "h100-sxm": (989.4e12, 80e9, 3.35e12, 450e9),
    "h200-sxm": (989.4e12, 141e9, 4.8e12, 450e9),
    "b200-sxm": (2.25e15, 180e9, 8e12, 900e9),
    "a100-80gb": (312e12, 80e9, 2.039e12, 300e9),
    "mi300x": (1307.4e12, 192e9, 5.3e12, 64e9),
    "ascend-910b": (376e12, 64e9, 1.6e12, 28e9),
    "ascend-910c": (752e12, 128e9, 3.2e12, 392e9),
}


@pytest.mark.parametrize("name", ACCELERATORS)
def test_accelerators_stand_in_nodes_of_eight(name: str) -> None:
    hardware = load_hardware(name)
    die = hardware.die
    assert (die.peak_flops, die.hbm_bytes, die.hbm_bytes_per_s, hardware.link_bytes_per_s) == ACCELERATORS[name]
    assert (hardware.rows, hardware.columns) == (1, 8)
    # A network port is slower than the links inside a node.
    assert hardware.seam_bytes_per_s < hardware.link_bytes_per_s
    assert hardware.source is not None and "assumptions" in hardware.source


def test_a_group_has_the_rates_of_its_members_together() -> None:
    single = load_hardware("h20").model_copy(update={"host": Host(host_bytes=1e12, host_bytes_per_s=64e9)})
    group = tensor_parallel(single, 4)
    assert (group.columns, group.name) == (2, "h20-tp4")
    assert (group.die.peak_flops, group.die.hbm_bytes, group.die.hbm_bytes_per_s) == (592e12, 384e9, 16e12)
    assert (group.link_bytes_per_s, group.wafer_link_bytes_per_s) == (1.8e12, 200e9)
    assert group.host == Host(host_bytes=4e12, host_bytes_per_s=256e9)
    # Shares, overheads and latencies are not multiplied.
    for name in ("gemm_efficiency", "attention_efficiency", "layer_overhead_s", "chunk_overhead_s"):
        assert getattr(group.die, name) == getattr(single.die, name)
    assert group.hop_latency_s == single.hop_latency_s
    assert "Groups of 4" in str(group.source)
    assert tensor_parallel(single, 1) is single


@pytest.mark.parametrize("degree", [0, -2, 3, 16])
def test_groups_fill_a_row(degree: int) -> None:
    with pytest.raises(InputError, match="a divisor of the 8"):
        tensor_parallel(load_hardware("h20"), degree)


def test_groups_are_of_whole_and_like_dies() -> None:
    single = load_hardware("h20")
    with pytest.raises(InputError, match="disabled_dies"):
        tensor_parallel(single.model_copy(update={"disabled_dies": ((0, 1),)}), 2)
    with pytest.raises(InputError, match=r"hardware\.dies"):
        tensor_parallel(single.model_copy(update={"dies": (DieOverride(at=(0, 0), hbm_bytes=1e9),)}), 2)


def test_heads_divide_over_a_group() -> None:
    # Qwen3-235B: 64 heads, 4 KV heads. Eight members keep each KV head twice: 2 * 8 / 4 bytes.
    model = load_model("qwen3-235b")
    check_heads(model, 4)
    with pytest.raises(InputError, match=r"tp: 8 .*4 KV heads .*\(--kv-bytes\) 4$"):
        check_heads(model, 8)
    check_heads(model, 8, kv_stated=True)
    with pytest.raises(InputError, match=r"tp: 6 .*64 heads"):
        check_heads(model, 6, kv_stated=True)
    # The one latent of MLA is kept by all members.
    with pytest.raises(InputError, match=r"tp: 4 .*1 latent .*\(--kv-bytes\) 8$"):
        check_heads(load_model("deepseek-v3"), 4)
    check_heads(load_model("deepseek-v3"), 1)
