"""The timeline of dies in step: every chunk takes a slot, and a stage is one slot behind the one before it.

Where chunk times differ a little, a run without memory limits drifts out of step, some dies race ahead, and at moments
more KV is alive than there need be. A plan that waits now and then stays nearer to lockstep, in which equal chunks use
memory most evenly: spill that fits this timeline often runs where spill for the unlimited run does not exist, at the
price of these waits. The replay decides.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from solver.exact.pool import Unlimited

GAP = 1e-3
"""Share of a slot between the end of a chunk and the next start, so that ends come before starts."""


def lockstep(unlimited: Unlimited) -> Unlimited:
    """The same run in slots as long as the longest chunk."""
    waves, stages, chunks = unlimited.start_s.shape
    slot_s = float((unlimited.end_s - unlimited.start_s).max())
    first = np.arange(waves)[:, None, None] * chunks + np.arange(stages)[None, :, None] + np.arange(chunks)
    start_s = first * slot_s
    return replace(unlimited, start_s=start_s, end_s=start_s + (1 - GAP) * slot_s)
