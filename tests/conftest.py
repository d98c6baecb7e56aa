"""Hypothesis profiles: test runs repeat exactly unless a hunt for new examples is asked for.

``HYPOTHESIS_PROFILE=hunt python -m pytest`` draws new random examples, and more of them.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("hunt", derandomize=False, deadline=None, print_blob=True, max_examples=1000)

settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "repeatable"))
