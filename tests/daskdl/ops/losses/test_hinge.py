"""Hinge losses against PyTorch where it has them, and by their slopes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl.errors import DataError, ShapeError
from daskdl.ops import losses
from tests.daskdl.gradients import normal
from tests.daskdl.lossmeans import check_loss

SHAPES = hnp.array_shapes(max_dims=3, max_side=4)
DTYPES = st.sampled_from(["f4", "f8"])


def signs(shape):
    """Return -1 and 1."""
    return np.random.default_rng(1).choice([-1.0, 1.0], shape)


@given(shape=SHAPES, dtype=DTYPES, margin=st.sampled_from([0.5, 1.0]), squared=st.booleans())
def test_hinge(shape, dtype, margin, squared, torch):
    check_loss(
        torch,
        lambda *x, **k: losses.hinge(*x, margin=margin, squared=squared, **k),
        lambda x, t: (margin - t * x).clamp(min=0) ** (2 if squared else 1),
        2 * normal(*shape),
        signs(shape),
        dtype=dtype,
    )


@given(shape=SHAPES, dtype=DTYPES, scale=st.sampled_from([1, 30]))
def test_soft_margin(shape, dtype, scale, torch):
    check_loss(
        torch,
        losses.soft_margin,
        lambda x, t: torch.nn.functional.soft_margin_loss(x, t, reduction="none"),
        scale * normal(*shape),
        signs(shape),
        dtype=dtype,
    )


@given(shape=SHAPES, dtype=DTYPES, margin=st.sampled_from([0.5, 1.0]))
def test_hinge_embedding(shape, dtype, margin, torch):
    check_loss(
        torch,
        lambda *x, **k: losses.hinge_embedding(*x, margin=margin, **k),
        lambda x, t: torch.nn.functional.hinge_embedding_loss(
            x, t, margin=margin, reduction="none"
        ),
        2 * normal(*shape),
        signs(shape),
        dtype=dtype,
    )


@pytest.mark.parametrize("loss", [losses.hinge, losses.soft_margin, losses.hinge_embedding])
def test_targets_are_signs(loss):
    with pytest.raises(DataError, match=f"{loss.__name__}: expected targets of -1 and 1, found 0"):
        loss(np.zeros(3), np.array([1, 0, -1]))
    with pytest.raises(ShapeError, match=r"target of shape \(3, 1\), found \(3,\)"):
        loss(np.zeros((3, 1)), np.ones(3))
