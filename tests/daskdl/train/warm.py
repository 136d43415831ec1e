"""Load the modules and kernels of a fit: worker processes of tests are forks of this module."""

from __future__ import annotations

import daskdl.train.gang.member  # noqa: F401
from tests.daskdl.train.runs import fit, problem

fit(problem(2), iterations=2, validation=problem(1), client=False, threads=1)
