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


@given(shape=hnp.array_shapes(max_dims=3, max_side=4), dtype=st.sampled_from(["f4", "f8"]))
def test_of_normal_distributions_it_is_pytorchs(shape, dtype, torch):
    def theirs(mean, log_variance):
        normals = torch.distributions.Normal
        own, standard = normals(mean, (log_variance / 2).exp()), normals(0.0, 1.0)
        return torch.distributions.kl_divergence(own, standard).sum(-1)

    arrays = normal(*shape, 3), normal(*shape, 3, seed=1)
    check_loss(torch, losses.gaussian_kl, theirs, *arrays, wanted=(True, True), dtype=dtype)


def test_of_a_distribution_from_itself_it_is_zero():
    p = np.random.default_rng(0).dirichlet(np.ones(4), 3)
    assert float(losses.kl_divergence(np.log(p), p)) == pytest.approx(0, abs=1e-12)


def test_a_vector_has_no_axis_for_the_distribution():
    with pytest.raises(ShapeError, match=r"kl_divergence: expected shape .* found \(3,\)"):
        losses.kl_divergence(np.zeros(3), np.zeros(3))
    with pytest.raises(ShapeError, match=r"gaussian_kl: expected arrays .* found \(3,\)"):
        losses.gaussian_kl(np.zeros(3), np.zeros(3))
