"""Networks of the moving frame compute in float32 where products are of pairs; see precision.md."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.kernels.runtime.precision import computing_in
from daskdl.ops import mean
from nowcast.lagrangian.exceedance import THRESHOLDS
from nowcast.model.moving.features import CHANNELS
from nowcast.model.moving.networks import NAMES, network


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.long) if n == "trajgru" else n for n in NAMES]
)
def test_their_products_are_float32s_in_both_precisions(name):
    x = np.random.default_rng(0).standard_normal((2, 24, 24, CHANNELS + len(THRESHOLDS)))
    found = []
    for precision in ("float32", "bf16-pairs"):
        made = network(name, 1).eval()
        made.head.weight.data[...] = 0.1
        with computing_in(precision):
            y = made(x.astype(np.float32))
            mean(y * y).backward()
        found.append((y.data, made.flat_grad.copy()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
