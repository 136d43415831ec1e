"""Settings of hypothesis: no deadline, since numba compiles inside the first example."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("daskdl", deadline=None, max_examples=25)
settings.load_profile("daskdl")
