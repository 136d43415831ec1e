"""Likelihoods of counts and of numbers against PyTorch."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl.ops import losses
from tests.daskdl.gradients import normal
from tests.daskdl.lossmeans import check_loss

SHAPES = hnp.array_shapes(max_dims=3, max_side=4)
DTYPES = st.sampled_from(["f4", "f8"])


@given(shape=SHAPES, dtype=DTYPES, log=st.booleans(), full=st.booleans())
def test_poisson(shape, dtype, log, full, torch):
    prediction = normal(*shape) if log else np.abs(normal(*shape)) + 0.1
    counts = np.random.default_rng(0).poisson(2, shape).astype(float)
    check_loss(
        torch,
        lambda *x, **k: losses.poisson_nll(*x, log=log, full=full, **k),
        lambda x, t: torch.nn.functional.poisson_nll_loss(
            x, t, log_input=log, full=full, reduction="none"
        ),
        prediction,
        counts,
        dtype=dtype,
    )


@given(shape=SHAPES, dtype=DTYPES, low=st.booleans())
def test_gauss(shape, dtype, low, torch):
    variance = np.abs(normal(*shape, seed=1)) + 0.05
    if low:
        variance.flat[0] = 0  # less than eps
    check_loss(
        torch,
        lambda *x, **k: losses.gaussian_nll(*x, eps=0.01, **k),
        lambda m, v, t: torch.nn.functional.gaussian_nll_loss(m, t, v, eps=0.01, reduction="none"),
        normal(*shape),
        variance,
        normal(*shape, seed=2),
        wanted=(True, True),
        dtype=dtype,
    )
