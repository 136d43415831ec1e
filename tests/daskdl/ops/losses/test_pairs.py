"""Losses of two or three embeddings against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl.errors import SettingsError, ShapeError
from daskdl.ops import losses
from tests.daskdl.gradients import normal
from tests.daskdl.lossmeans import check_loss

DTYPES = st.sampled_from(["f4", "f8"])
BOTH = (True, True)


@given(
    shape=hnp.array_shapes(max_dims=3, max_side=4),
    dtype=DTYPES,
    margin=st.sampled_from([0.0, 0.5]),
)
def test_margin_ranking(shape, dtype, margin, torch):
    t = np.random.default_rng(1).choice([-1.0, 1.0], shape)
    check_loss(
        torch,
        lambda *x, **k: losses.margin_ranking(*x, margin=margin, **k),
        lambda a, b, t: torch.nn.functional.margin_ranking_loss(
            a, b, t, margin=margin, reduction="none"
        ),
        normal(*shape), normal(*shape, seed=1), t, wanted=BOTH, dtype=dtype,
    )  # fmt: skip


@given(n=st.integers(1, 6), d=st.integers(2, 5), dtype=DTYPES, margin=st.sampled_from([0.0, 0.3]))
def test_cosine_embedding(n, d, dtype, margin, torch):
    t = np.random.default_rng(1).choice([-1.0, 1.0], n)
    check_loss(
        torch,
        lambda *x, **k: losses.cosine_embedding(*x, margin=margin, **k),
        lambda a, b, t: torch.nn.functional.cosine_embedding_loss(
            a, b, t, margin=margin, reduction="none"
        ),
        normal(n, d), normal(n, d, seed=1), t, wanted=BOTH, dtype=dtype,
    )  # fmt: skip


@given(
    n=st.integers(1, 6),
    d=st.integers(1, 5),
    dtype=DTYPES,
    p=st.sampled_from([1.0, 2.0, 3.0]),
    swap=st.booleans(),
    margin=st.sampled_from([0.2, 1.0, 4.0]),
)
def test_triplet(n, d, dtype, p, swap, margin, torch):
    check_loss(
        torch,
        lambda *x, **k: losses.triplet(*x, p=p, swap=swap, margin=margin, **k),
        lambda a, b, c: torch.nn.functional.triplet_margin_loss(
            a, b, c, p=p, swap=swap, margin=margin, reduction="none"
        ),
        normal(n, d), normal(n, d, seed=1), normal(n, d, seed=2),
        wanted=(True, True, True), dtype=dtype,
    )  # fmt: skip


def test_embeddings_of_zeros_have_a_gradient():
    from daskdl.tensor import Tensor

    zeros = Tensor(np.zeros((2, 3)), requires_grad=True)
    losses.cosine_embedding(zeros, zeros, np.array([1, -1])).backward()
    losses.triplet(zeros, zeros, zeros, eps=0.0).backward()
    assert np.isfinite(zeros.grad).all()


def test_mistakes():
    with pytest.raises(SettingsError, match=r"expected p >= 1 and finite, found 0\.5"):
        losses.triplet(*[np.zeros((2, 3))] * 3, p=0.5)
    with pytest.raises(SettingsError, match=r"expected p >= 1 and finite, found inf"):
        losses.triplet(*[np.zeros((2, 3))] * 3, p=np.inf)
    with pytest.raises(ShapeError, match=r"triplet: .* \(N, ..., D\), found \(3,\)"):
        losses.triplet(*[np.zeros(3)] * 3)
    with pytest.raises(ShapeError, match=r"cosine_embedding: .* shape \(2,\), found \(2, 3\)"):
        losses.cosine_embedding(np.zeros((2, 3)), np.zeros((2, 3)), np.ones((2, 3)))
