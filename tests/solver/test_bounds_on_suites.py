"""No plan near those of the methods beats its bound; ``tests/performance/hunt.py`` does the same for all suites."""

from __future__ import annotations

import pytest

from instances.instance import Instance
from tests.performance.hunt import SUITES, hunt


@pytest.mark.parametrize("name", ["mocap-latency/llama3-70b-32k", "slow-links/qwen3-235b-32k-seam-900gbs"])
def test_hunt(name: str) -> None:
    catch = hunt(Instance.load(SUITES / f"{name}.json"), time_s=3, replays=25)
    assert catch.replays >= 25
    assert catch.broken == 0
    assert catch.notices_mutant
