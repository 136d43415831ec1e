"""Cross entropy, focal loss and CTC: gradients, ignored labels, smoothing, infinite costs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl import ops
from daskdl.ops import losses
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.lossmeans import check_loss, sample_weights

DTYPES = st.sampled_from(["f4", "f8"])
SHAPES = hnp.array_shapes(max_dims=3, max_side=4)


@given(shape=hnp.array_shapes(max_dims=3, max_side=4), classes=st.integers(1, 5))
def test_cross_entropy_gradient(shape, classes):
    labels = np.random.default_rng(0).integers(0, classes, shape)
    check_gradient(lambda t: ops.cross_entropy(t, labels), normal(*shape, classes))


@given(shape=SHAPES, classes=st.integers(1, 5), gamma=st.sampled_from([0.0, 0.5, 2.0]))
def test_focal_gradient(shape, classes, gamma):
    labels = np.random.default_rng(0).integers(0, classes, shape)
    weight = np.linspace(1, 2, classes)
    check_gradient(
        lambda t: ops.losses.focal(t, labels, gamma=gamma, weight=weight), normal(*shape, classes)
    )


def test_focal_is_the_cross_entropy_times_uncertainty():
    logits, labels = normal(6, 5), np.array([0, 4, 2, 2, 1, 3])
    p = np.exp(logits[range(6), labels]) / np.exp(logits).sum(1)
    expected = (-((1 - p) ** 3) * np.log(p)).mean()
    assert float(ops.losses.focal(logits, labels, gamma=3.0)) == pytest.approx(expected)
    entropy = float(ops.cross_entropy(logits, labels))
    assert float(ops.losses.focal(logits, labels, gamma=0.0)) == pytest.approx(entropy)
    sure = Tensor(1e4 * np.eye(5, dtype=np.float32), requires_grad=True)
    ops.losses.focal(sure, np.arange(5)).backward()
    assert np.isfinite(sure.grad).all()


def test_cross_entropy_takes_any_integers_and_layout():
    logits = normal(4, 6, 5).astype("f4")
    labels = np.random.default_rng(0).integers(0, 5, (4, 6))
    expected = float(ops.cross_entropy(logits, labels))
    for kind in ("u1", "i4", "u8"):
        assert float(ops.cross_entropy(np.asfortranarray(logits), labels.astype(kind))) == expected


def test_cross_entropy_of_nothing_is_nan():
    assert np.isnan(ops.cross_entropy(np.empty((0, 3)), np.empty(0, int)).data)


@given(length=st.integers(1, 5), dtype=DTYPES, nll=st.booleans(), smoothing=st.floats(0, 1))
def test_ignored_labels_are_left_out_of_each_samples_mean(length, dtype, nll, smoothing, torch):
    """PyTorch's mean over a batch of one sample leaves them out, too."""
    rng = np.random.default_rng(length)
    labels = rng.integers(-1, 3, (3, length))
    labels[0] = -1
    x = normal(3, length, 3).astype(dtype)
    settings = {} if nll else {"label_smoothing": smoothing}
    ours, mine = (losses.nll, {}) if nll else (losses.cross_entropy, {"smoothing": smoothing})
    theirs = torch.nn.functional.nll_loss if nll else torch.nn.functional.cross_entropy
    weights, there = sample_weights(3), torch.tensor(x, requires_grad=True)
    total = 0 * there.sum()
    for i in range(3):
        if (labels[i] != -1).any():
            each = theirs(there[i], torch.tensor(labels[i]), ignore_index=-1, **settings)
            total = total + each * weights[i] / 3
    here = Tensor(x, requires_grad=True)
    value = ours(here, labels, ignore_index=-1, sample_weight=weights, **mine)
    value.backward()
    assert float(value) == pytest.approx(total.item(), rel=1e-5, abs=1e-6)
    total.backward()
    np.testing.assert_allclose(here.grad, there.grad.numpy(), atol=1e-6)


def test_nan_shows_unless_its_label_is_ignored():
    x = Tensor(np.array([[np.nan, 0.0], [1.0, 2.0]]), requires_grad=True)
    for function in (losses.cross_entropy, losses.nll):
        x.grad = None
        loss = function(x, np.array([7, 1]), ignore_index=7)
        loss.backward()
        assert np.isfinite(float(loss))
        assert (x.grad[0] == 0).all()
        assert np.isnan(float(function(x, np.array([0, 1]))))


def test_everything_ignored_is_zero():
    x = Tensor(normal(2, 3), requires_grad=True)
    loss = losses.cross_entropy(x, np.full(2, -100), ignore_index=-100)
    loss.backward()
    assert float(loss) == 0
    assert (x.grad == 0).all()


def test_far_apart_logits_keep_their_digits_with_smoothing(torch):
    x = (1e4 * normal(6, 5)).astype("f4")
    labels = np.arange(6) % 5
    expected = torch.nn.functional.cross_entropy(
        torch.tensor(x.astype("f8")), torch.tensor(labels), label_smoothing=0.1
    )
    assert float(losses.cross_entropy(x, labels, smoothing=0.1)) == pytest.approx(
        expected.item(), rel=1e-6
    )


def test_an_impossible_label_costs_infinitely_much_also_with_smoothing():
    for smoothing in (0.0, 0.1):
        loss = losses.cross_entropy(np.array([[0, -np.inf]]), np.array([1]), smoothing=smoothing)
        assert float(loss) == np.inf


def draw(n, steps, classes, longest, blank):
    """Return padded labels, in which neighbours repeat, and lengths."""
    rng = np.random.default_rng([n, steps, classes, longest])
    labels = rng.choice([c for c in range(classes) if c != blank], (n, longest))
    labels[np.arange(longest) >= rng.integers(0, longest + 1, n)[:, None]] = -1
    return labels, rng.integers(1, steps + 1, n)


def pytorchs(torch, labels, lengths, blank):
    """Return PyTorch's loss of each sample, 0 where it is infinite."""

    def theirs(x, _):
        return torch.nn.functional.ctc_loss(
            x.log_softmax(-1).movedim(1, 0),
            torch.tensor(np.where(labels < 0, (blank == 0) * 1, labels)),
            torch.tensor(lengths),
            torch.tensor((labels >= 0).sum(1)),
            blank=blank,
            reduction="none",
            zero_infinity=True,
        )

    return theirs


@given(
    n=st.integers(1, 4),
    steps=st.integers(1, 8),
    classes=st.integers(2, 5),
    longest=st.integers(1, 4),
    last=st.booleans(),
    dtype=st.sampled_from(["f4", "f8"]),
)
def test_ctc_is_pytorchs(n, steps, classes, longest, last, dtype, torch):
    blank = classes - 1 if last else 0
    labels, lengths = draw(n, steps, classes, longest, blank)
    check_loss(
        torch,
        lambda *x, **k: losses.ctc(*x, lengths=lengths, blank=blank, zero_infinity=True, **k),
        pytorchs(torch, labels, lengths, blank),
        normal(n, steps, classes),
        labels,
        dtype=dtype,
    )


def test_too_few_steps_cost_infinity_or_with_zero_infinity_nothing():
    x, labels = Tensor(normal(1, 2, 3), requires_grad=True), np.array([[1, 1]])
    assert float(losses.ctc(x, labels)) == np.inf  # 1, blank, 1 takes three
    loss = losses.ctc(x, labels, zero_infinity=True)
    loss.backward()
    assert float(loss) == 0
    assert (x.grad == 0).all()


def test_no_labels_in_no_steps_are_certain():
    x = Tensor(normal(1, 2, 3), requires_grad=True)
    loss = losses.ctc(x, np.array([[-1]]), lengths=np.array([0]))
    loss.backward()
    assert float(loss) == 0
    assert (x.grad == 0).all()
