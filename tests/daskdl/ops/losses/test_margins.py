"""Losses of margins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl.errors import DataError, SettingsError, ShapeError
from daskdl.ops import losses
from tests.daskdl.gradients import normal
from tests.daskdl.lossmeans import check_loss

DTYPES = st.sampled_from(["f4", "f8"])


@given(
    n=st.integers(1, 5),
    classes=st.integers(1, 6),
    dtype=DTYPES,
    p=st.sampled_from([1, 2]),
    margin=st.sampled_from([0.3, 1.0]),
    weighted=st.booleans(),
)
def test_multi_margin(n, classes, dtype, p, margin, weighted, torch):
    rng = np.random.default_rng(n)
    weight = rng.uniform(0, 2, classes) if weighted else None
    there = None if weight is None else torch.tensor(weight.astype(dtype))
    check_loss(
        torch,
        lambda *x, **k: losses.multi_margin(*x, p=p, margin=margin, weight=weight, **k),
        lambda x, t: torch.nn.functional.multi_margin_loss(
            x, t, p=p, margin=margin, weight=there, reduction="none"
        ),
        normal(n, classes),
        rng.integers(0, classes, n),
        dtype=dtype,
    )


@given(n=st.integers(1, 5), classes=st.integers(1, 6), dtype=DTYPES)
def test_multilabel_margin(n, classes, dtype, torch):
    rng = np.random.default_rng([n, classes])
    labels = np.array([rng.permutation(classes) for _ in range(n)])
    labels[np.arange(classes) >= rng.integers(0, classes + 1, n)[:, None]] = -1
    check_loss(
        torch,
        losses.multilabel_margin,
        lambda x, t: torch.nn.functional.multilabel_margin_loss(x, t, reduction="none"),
        normal(n, classes),
        labels,
        dtype=dtype,
    )


def test_fewer_columns_than_classes_and_what_follows_the_first_end(torch):
    x = normal(2, 4)
    padded = np.array([[2, -1, -1, -1], [0, 3, -1, -1]])
    expected = float(losses.multilabel_margin(x, padded))
    assert float(losses.multilabel_margin(x, padded[:, :3])) == expected
    padded[:, 3] = 1  # after the end, as PyTorch ignores it
    assert float(losses.multilabel_margin(x, padded)) == expected


@pytest.mark.parametrize(
    ("call", "error", "sentence"),
    [
        (lambda: losses.multi_margin(np.zeros((2, 3)), np.array([0, 3])), ShapeError, "found 3"),
        (lambda: losses.multi_margin(np.zeros(3), np.zeros(3, int)), ShapeError, r"\(N, C\)"),
        (
            lambda: losses.multi_margin(np.zeros((1, 3)), np.zeros(1, int), p=3),
            SettingsError,
            "p 1 or 2, found 3",
        ),
        (
            lambda: losses.multilabel_margin(np.zeros((2, 3)), np.array([[0, 5], [0, 1]])),
            ShapeError,
            "labels from 0 to 2, found 5",
        ),
        (
            lambda: losses.multilabel_margin(np.zeros((2, 3)), np.zeros((1, 3), int)),
            ShapeError,
            r"shape \(2, K\), each row ended by -1, found int64 \(1, 3\)",
        ),
    ],
)
def test_mistakes(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()


def test_multilabel_margins_show_what_diverged():
    prediction = np.array([[0.5, np.nan, 0.1], [1.0, 2.0, 3.0]], np.float32)
    labels = np.array([[0, -1], [2, 1]])
    assert np.isnan(losses.multilabel_margin(prediction, labels).data)
    kept = losses.multilabel_margin(prediction[1:], labels[1:]).data
    np.testing.assert_allclose(kept, (max(0, 1 - 3 + 1) + max(0, 1 - 2 + 1)) / 3)


SHAPES = hnp.array_shapes(max_dims=3, max_side=4)
DTYPES_HINGE = st.sampled_from(["f4", "f8"])


def signs(shape):
    """Return -1 and 1."""
    return np.random.default_rng(1).choice([-1.0, 1.0], shape)


@given(shape=SHAPES, dtype=DTYPES_HINGE, margin=st.sampled_from([0.5, 1.0]), squared=st.booleans())
def test_hinge(shape, dtype, margin, squared, torch):
    check_loss(
        torch,
        lambda *x, **k: losses.hinge(*x, margin=margin, squared=squared, **k),
        lambda x, t: (margin - t * x).clamp(min=0) ** (2 if squared else 1),
        2 * normal(*shape),
        signs(shape),
        dtype=dtype,
    )


@given(shape=SHAPES, dtype=DTYPES_HINGE, scale=st.sampled_from([1, 30]))
def test_soft_margin(shape, dtype, scale, torch):
    check_loss(
        torch,
        losses.soft_margin,
        lambda x, t: torch.nn.functional.soft_margin_loss(x, t, reduction="none"),
        scale * normal(*shape),
        signs(shape),
        dtype=dtype,
    )


@given(shape=SHAPES, dtype=DTYPES_HINGE, margin=st.sampled_from([0.5, 1.0]))
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


def test_mistakes_of_pairs():
    with pytest.raises(SettingsError, match=r"expected p >= 1 and finite, found 0\.5"):
        losses.triplet(*[np.zeros((2, 3))] * 3, p=0.5)
    with pytest.raises(SettingsError, match=r"expected p >= 1 and finite, found inf"):
        losses.triplet(*[np.zeros((2, 3))] * 3, p=np.inf)
    with pytest.raises(ShapeError, match=r"triplet: .* \(N, ..., D\), found \(3,\)"):
        losses.triplet(*[np.zeros(3)] * 3)
    with pytest.raises(ShapeError, match=r"cosine_embedding: .* shape \(2,\), found \(2, 3\)"):
        losses.cosine_embedding(np.zeros((2, 3)), np.zeros((2, 3)), np.ones((2, 3)))
