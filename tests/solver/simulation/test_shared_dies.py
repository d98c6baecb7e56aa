"""The engine and the witness agree exactly on programs whose stages share dies, on all topologies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from tests.solver.simulation.shared_dies import random_shared_die_program, shared_die_programs
from tests.solver.simulation.test_against_reference import differences

BATCHES, PROGRAMS_PER_BATCH = 6, 50


@settings(max_examples=200)
@given(shared_die_programs())
def test_engine_and_witness_agree(document: dict[str, Any]) -> None:
    assert differences(document) == {}


@pytest.mark.parametrize("batch", range(BATCHES))
def test_engine_and_witness_agree_in_bulk(batch: int) -> None:
    for number in range(PROGRAMS_PER_BATCH):
        document = random_shared_die_program(np.random.default_rng((batch, number)))
        assert differences(document) == {}, document
