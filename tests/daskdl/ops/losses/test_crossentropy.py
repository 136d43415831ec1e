"""Cross entropy against PyTorch: labels, probabilities, weights, smoothing, what is ignored."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from daskdl import ops
from daskdl.errors import DataError, SettingsError, ShapeError
from daskdl.ops import losses
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.lossmeans import check_loss, sample_weights

DTYPES = st.sampled_from(["f4", "f8"])
SHAPES = hnp.array_shapes(max_dims=3, max_side=4)


def second(x):
    """Move the classes to where PyTorch has them."""
    return x.movedim(-1, 1).contiguous()


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


def test_focal_is_the_cross_entropy_times_what_is_missing_to_certainty():
    logits, labels = normal(6, 5), np.array([0, 4, 2, 2, 1, 3])
    p = np.exp(logits[range(6), labels]) / np.exp(logits).sum(1)
    expected = (-((1 - p) ** 3) * np.log(p)).mean()
    assert float(ops.losses.focal(logits, labels, gamma=3.0)) == pytest.approx(expected)
    plain = float(ops.cross_entropy(logits, labels))
    assert float(ops.losses.focal(logits, labels, gamma=0.0)) == pytest.approx(plain)
    sure = Tensor(1e4 * np.eye(5, dtype=np.float32), requires_grad=True)
    ops.losses.focal(sure, np.arange(5)).backward()
    assert np.isfinite(sure.grad).all()


@pytest.mark.parametrize("scale", [1, 1e4])
def test_cross_entropy_agrees_with_pytorch(scale, torch):
    logits = (scale * normal(6, 5)).astype("f4")
    labels = np.array([0, 4, 2, 2, 1, 3])
    theirs = torch.tensor(logits, requires_grad=True)
    expected = torch.nn.functional.cross_entropy(theirs, torch.tensor(labels))
    expected.backward()
    ours = Tensor(logits, requires_grad=True)
    loss = ops.cross_entropy(ours, labels)
    loss.backward()
    assert float(loss) == pytest.approx(expected.item(), rel=1e-6)
    np.testing.assert_allclose(ours.grad, theirs.grad.numpy(), atol=1e-6)


def test_cross_entropy_takes_any_integers_and_layout():
    logits = normal(4, 6, 5).astype("f4")
    labels = np.random.default_rng(0).integers(0, 5, (4, 6))
    expected = float(ops.cross_entropy(logits, labels))
    for kind in ("u1", "i4", "u8"):
        assert float(ops.cross_entropy(np.asfortranarray(logits), labels.astype(kind))) == expected


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        ([0, 3], "cross_entropy: expected labels from 0 to 2, found 3"),
        ([-1, 0], "cross_entropy: expected labels from 0 to 2, found -1"),
        ([0.0, 1.0], r"cross_entropy: expected integer labels of shape \(2,\), found float64"),
        ([[0, 1]], r"cross_entropy: expected integer labels of shape \(2,\), found int64 \(1, 2\)"),
    ],
)
def test_cross_entropy_names_labels_that_do_not_fit(labels, sentence):
    with pytest.raises(ShapeError, match=sentence):
        ops.cross_entropy(np.zeros((2, 3)), np.array(labels))


def test_cross_entropy_of_nothing_is_nan():
    assert np.isnan(ops.cross_entropy(np.empty((0, 3)), np.empty(0, int)).data)


@given(
    shape=SHAPES,
    classes=st.integers(1, 6),
    dtype=DTYPES,
    weighted=st.booleans(),
    smoothing=st.sampled_from([0.0, 0.1, 1.0]),
    of_samples=st.booleans(),
)
def test_labels_agree_with_pytorch(shape, classes, dtype, weighted, smoothing, of_samples, torch):
    rng = np.random.default_rng([*shape, classes])
    weight = rng.uniform(0, 2, classes) if weighted else None
    there = None if weight is None else torch.tensor(weight.astype(dtype))
    check_loss(
        torch,
        lambda *x, **k: losses.cross_entropy(*x, weight=weight, smoothing=smoothing, **k),
        lambda x, t: torch.nn.functional.cross_entropy(
            second(x), t, there, label_smoothing=smoothing, reduction="none"
        ),
        normal(*shape, classes),
        rng.integers(0, classes, shape),
        dtype=dtype,
        weighted=of_samples,
    )


@given(
    shape=SHAPES,
    classes=st.integers(1, 6),
    dtype=DTYPES,
    weighted=st.booleans(),
    smoothing=st.sampled_from([0.0, 0.1]),
)
def test_probabilities_agree_with_pytorch(shape, classes, dtype, weighted, smoothing, torch):
    rng = np.random.default_rng([*shape, classes])
    weight = rng.uniform(0, 2, classes) if weighted else None
    there = None if weight is None else torch.tensor(weight.astype(dtype))
    check_loss(
        torch,
        lambda *x, **k: losses.cross_entropy(*x, weight=weight, smoothing=smoothing, **k),
        lambda x, t: torch.nn.functional.cross_entropy(
            second(x), second(t), there, label_smoothing=smoothing, reduction="none"
        ),
        normal(*shape, classes),
        rng.dirichlet(np.ones(classes), shape),
        wanted=(True, True),
        dtype=dtype,
    )


@given(shape=SHAPES, dtype=DTYPES, weighted=st.booleans())
def test_nll_agrees_with_pytorch(shape, dtype, weighted, torch):
    rng = np.random.default_rng(0)
    weight = rng.uniform(0, 2, 4) if weighted else None
    there = None if weight is None else torch.tensor(weight.astype(dtype))
    check_loss(
        torch,
        lambda *x, **k: losses.nll(*x, weight=weight, **k),
        lambda x, t: torch.nn.functional.nll_loss(second(x), t, there, reduction="none"),
        normal(*shape, 4),
        rng.integers(0, 4, shape),
        dtype=dtype,
    )


@given(length=st.integers(1, 5), dtype=DTYPES, plain=st.booleans(), smoothing=st.floats(0, 1))
def test_ignored_labels_are_left_out_of_each_samples_mean(length, dtype, plain, smoothing, torch):
    """PyTorch's mean over a batch of one sample leaves them out, too."""
    rng = np.random.default_rng(length)
    labels = rng.integers(-1, 3, (3, length))
    labels[0] = -1
    x = normal(3, length, 3).astype(dtype)
    settings = {} if plain else {"label_smoothing": smoothing}
    ours, mine = (losses.nll, {}) if plain else (losses.cross_entropy, {"smoothing": smoothing})
    theirs = torch.nn.functional.nll_loss if plain else torch.nn.functional.cross_entropy
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


def test_what_is_ignored_need_not_be_finite_and_what_counts_shows():
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


@pytest.mark.parametrize(
    ("settings", "error", "sentence"),
    [
        ({"smoothing": 1.5}, SettingsError, r"smoothing from 0 to 1, found 1\.5"),
        ({"weight": [1, 2]}, ShapeError, r"each of 3 classes, found shape \(2,\)"),
    ],
)
def test_settings_that_do_not_fit(settings, error, sentence):
    with pytest.raises(error, match=sentence):
        losses.cross_entropy(np.zeros((2, 3)), np.zeros(2, int), **settings)


def test_probabilities_have_no_label_to_ignore():
    with pytest.raises(SettingsError, match="no ignore_index with probabilities, found 1"):
        losses.cross_entropy(np.zeros((2, 3)), np.zeros((2, 3)), ignore_index=1)


def test_nll_names_labels_that_do_not_fit():
    with pytest.raises(ShapeError, match="nll: expected labels from 0 to 2, found 3"):
        losses.nll(np.zeros((2, 3)), np.array([0, 3]))
    with pytest.raises(ShapeError, match=r"nll: .* labels of shape \(2,\), found float64"):
        losses.nll(np.zeros((2, 3)), np.zeros(2))


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
def test_it_is_pytorchs(n, steps, classes, longest, last, dtype, torch):
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


def test_too_few_steps_cost_infinity_unless_told():
    x, labels = Tensor(normal(1, 2, 3), requires_grad=True), np.array([[1, 1]])
    assert float(losses.ctc(x, labels)) == np.inf  # 1, blank, 1 takes three
    loss = losses.ctc(x, labels, zero_infinity=True)
    loss.backward()
    assert float(loss) == 0
    assert (x.grad == 0).all()


def test_no_steps_and_no_labels_is_certain():
    x = Tensor(normal(1, 2, 3), requires_grad=True)
    loss = losses.ctc(x, np.array([[-1]]), lengths=np.array([0]))
    loss.backward()
    assert float(loss) == 0
    assert (x.grad == 0).all()


def test_a_model_that_diverged_shows():
    x = normal(2, 4, 3)
    x[0, 1, 1] = np.nan
    assert np.isnan(float(losses.ctc(x, np.array([[1], [2]]))))


@pytest.mark.parametrize(
    ("labels", "settings", "error", "sentence"),
    [
        ([[1, 2]], {}, ShapeError, r"labels of shape \(2, S\), found int64 \(1, 2\)"),
        ([[1.0], [2.0]], {}, ShapeError, "found float64"),
        ([[1], [5]], {}, ShapeError, "labels from 0 to 2, found 5"),
        ([[1], [0]], {}, DataError, "labels other than the blank, found 0"),
        ([[1, 2], [-1, 2]], {}, DataError, r"-1 only after a sample's labels, found \[-1, 2\]"),
        ([[1], [2]], {"blank": 3}, ShapeError, "a blank from 0 to 2, found 3"),
        ([[1], [2]], {"lengths": [4, 5]}, DataError, "lengths from 0 to 4, found 5"),
        ([[1], [2]], {"lengths": [4]}, ShapeError, r"lengths of shape \(2,\), found int64 \(1,\)"),
    ],
)
def test_mistakes(labels, settings, error, sentence):
    with pytest.raises(error, match=sentence):
        losses.ctc(np.zeros((2, 4, 3)), np.array(labels), **settings)
