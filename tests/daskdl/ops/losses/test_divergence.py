"""Kullback-Leibler divergence against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl.errors import ShapeError
from daskdl.ops import losses
from tests.daskdl.gradients import normal
from tests.daskdl.lossmeans import check_loss


@given(
    shape=hnp.array_shapes(max_dims=3, max_side=4),
    classes=st.integers(1, 5),
    dtype=st.sampled_from(["f4", "f8"]),
    log=st.booleans(),
)
def test_it_is_pytorchs_summed_over_the_classes(shape, classes, dtype, log, torch):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(classes), shape)
    if log:
        p = np.log(p)
    elif classes > 1:
        p[..., 0] = 0  # 0 log 0 is 0
    check_loss(
        torch,
        lambda *x, **k: losses.kl_divergence(*x, log_target=log, **k),
        lambda x, t: torch.nn.functional.kl_div(x, t, reduction="none", log_target=log).sum(-1),
        normal(*shape, classes),
        p,
        dtype=dtype,
    )


def test_of_a_distribution_from_itself_it_is_zero():
    p = np.random.default_rng(0).dirichlet(np.ones(4), 3)
    assert float(losses.kl_divergence(np.log(p), p)) == pytest.approx(0, abs=1e-12)


def test_a_vector_has_no_axis_for_the_distribution():
    with pytest.raises(ShapeError, match=r"kl_divergence: expected shape .* found \(3,\)"):
        losses.kl_divergence(np.zeros(3), np.zeros(3))
