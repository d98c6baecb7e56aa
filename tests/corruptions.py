"""For every static rule plans that break it by a known amount, and beside each a plan just inside the limit."""

from __future__ import annotations

from tests.corruption_cases.case import Changes, Corruption
from tests.corruption_cases.memory import FIRST_BYTES, LAST_BYTES, MEMORY, MIDDLE_BYTES
from tests.corruption_cases.stages import STAGES
from tests.corruption_cases.tokens import TOKENS

CORRUPTIONS: tuple[Corruption, ...] = (*STAGES, *TOKENS, *MEMORY)

__all__ = ["CORRUPTIONS", "FIRST_BYTES", "LAST_BYTES", "MIDDLE_BYTES", "Changes", "Corruption"]
