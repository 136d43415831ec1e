"""Binary cross entropy against PyTorch: probabilities, logits, weights."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl.errors import DataError, ShapeError
from daskdl.ops import losses
from daskdl.tensor import Tensor
from tests.daskdl.gradients import normal
from tests.daskdl.lossmeans import check_loss

SHAPES = hnp.array_shapes(max_dims=3, max_side=4)
DTYPES = st.sampled_from(["f4", "f8"])


def targets(shape, soft):
    """Return zeros and ones, or what lies between."""
    t = np.random.default_rng(3).random(shape)
    return t if soft else np.round(t)


@given(shape=SHAPES, dtype=DTYPES, soft=st.booleans(), weighted=st.booleans())
def test_probabilities(shape, dtype, soft, weighted, torch):
    weight = np.random.default_rng(4).random(shape[-1]) if weighted else None
    there = None if weight is None else torch.tensor(weight.astype(dtype))
    check_loss(
        torch,
        lambda *x, **k: losses.binary_cross_entropy(*x, weight=weight, **k),
        lambda p, t: torch.nn.functional.binary_cross_entropy(p, t, there, reduction="none"),
        np.random.default_rng(5).uniform(0.02, 0.98, shape),
        targets(shape, soft),
        dtype=dtype,
    )


@given(
    shape=SHAPES,
    dtype=DTYPES,
    soft=st.booleans(),
    weighted=st.booleans(),
    positive=st.sampled_from([None, "all alike", "by class"]),
    scale=st.sampled_from([1, 100]),
)
def test_logits(shape, dtype, soft, weighted, positive, scale, torch):
    rng = np.random.default_rng(4)
    weight = rng.random(shape[-1]) if weighted else None
    pos_weight = None
    if positive:
        pos_weight = 3 * rng.random(shape[-1] if positive == "by class" else ())
    there = [None if w is None else torch.tensor(w.astype(dtype)) for w in (weight, pos_weight)]
    check_loss(
        torch,
        lambda *x, **k: losses.binary_cross_entropy_with_logits(
            *x, weight=weight, pos_weight=pos_weight, **k
        ),
        lambda x, t: torch.nn.functional.binary_cross_entropy_with_logits(
            x, t, weight=there[0], pos_weight=there[1], reduction="none"
        ),
        scale * normal(*shape),
        targets(shape, soft),
        dtype=dtype,
    )


def test_certain_probabilities_cost_100_at_most():
    p = Tensor(np.array([0.0, 1.0, 0.0, 1.0]), requires_grad=True)
    loss = losses.binary_cross_entropy(p, np.array([1.0, 0.0, 0.0, 1.0]))
    loss.backward()
    assert float(loss) == pytest.approx(50)
    assert np.isfinite(p.grad).all()


def test_logits_that_are_not_finite_show():
    x = Tensor(np.array([np.nan, 1.0]), requires_grad=True)
    losses.binary_cross_entropy_with_logits(x, np.zeros(2)).backward()
    assert np.isnan(x.grad[0])
    assert np.isfinite(x.grad[1])


def test_what_is_no_probability_is_refused():
    with pytest.raises(DataError, match=r"from 0 to 1, found 1\.5; for logits there is"):
        losses.binary_cross_entropy(np.array([0.5, 1.5]), np.zeros(2))


@pytest.mark.parametrize("name", ["weight", "pos_weight"])
def test_weights_have_to_broadcast(name):
    with pytest.raises(ShapeError, match=rf"{name}: .* broadcasts with \(2, 3\), found \(2,\)"):
        losses.binary_cross_entropy_with_logits(
            np.zeros((2, 3)), np.zeros((2, 3)), **{name: [1, 2]}
        )
