"""Connectionist temporal classification against PyTorch, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import DataError, ShapeError
from daskdl.ops import losses
from daskdl.tensor import Tensor
from tests.daskdl.gradients import normal
from tests.daskdl.lossmeans import check_loss


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
