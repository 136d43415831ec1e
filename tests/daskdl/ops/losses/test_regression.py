"""Losses of numbers, of distributions, and of images."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from skimage.metrics import structural_similarity

from daskdl.ops import losses
from daskdl.tensor import Tensor
from tests.daskdl.gradients import normal
from tests.daskdl.lossmeans import check_slopes

SHAPES = hnp.array_shapes(max_dims=4, max_side=4)


@given(shape=SHAPES)
def test_relative_and_logarithmic_errors(shape):
    a, b = normal(*shape), normal(*shape, seed=1)
    check_slopes(losses.percentage_error, a, constants=(b,))
    check_slopes(losses.squared_log_error, a, constants=(b,))
    expected = 100 * np.mean(np.abs(a - b) / np.abs(b))
    assert float(losses.percentage_error(a, b)) == pytest.approx(expected)
    expected = np.mean((np.log(1 + a.clip(0)) - np.log(1 + b.clip(0))) ** 2)
    assert float(losses.squared_log_error(a, b)) == pytest.approx(expected)


def test_squared_error_takes_targets_of_another_dtype_and_keeps_its_own():
    loss = losses.squared_error(np.ones((2, 2), "f4"), np.full((2, 2), 3))
    assert loss.dtype == np.float32
    assert float(loss) == 4


def test_the_sum_over_many_float32_is_accurate():
    x = normal(1 << 20).astype("f4")
    exact = np.mean(np.square(x, dtype="f8"))
    assert float(losses.squared_error(x, 0 * x)) == pytest.approx(exact, rel=1e-6)


def test_an_infinite_prediction_has_an_infinite_logarithm():
    assert float(losses.squared_log_error(np.array([np.inf]), np.array([1.0]))) == np.inf
    assert np.isnan(float(losses.squared_log_error(np.array([np.nan]), np.array([1.0]))))


def test_the_divergence_of_a_distribution_from_itself_is_zero():
    p = np.random.default_rng(0).dirichlet(np.ones(4), 3)
    assert float(losses.kl_divergence(np.log(p), p)) == pytest.approx(0, abs=1e-12)


def drawn(images=3, priors=30, classes=4):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, classes, (images, priors)) * (rng.random((images, priors)) < 0.3)
    labels[1] = 0  # an image without objects
    return (
        rng.normal(size=(images, priors, 4)),
        rng.normal(size=(images, priors, classes)),
        labels,
        rng.normal(size=(images, priors, 4)),
    )


def by_equations(offsets, logits, classes, target, ratio=3.0):
    """Return the loss of each image by equations 1 to 3 of the paper."""
    values = []
    for o, x, c, t in zip(offsets, logits, classes, target, strict=True):
        chances = np.exp(x) / np.exp(x).sum(1, keepdims=True)
        wrong = -np.log(chances[np.arange(len(c)), c])
        count = (c > 0).sum()
        negatives = sorted(wrong[c == 0])[::-1][: int(ratio * max(count, 1))]
        d = np.abs(o - t)[c > 0]
        places = np.where(d < 1, d * d / 2, d - 0.5).sum()
        values.append((wrong[c > 0].sum() + sum(negatives) + places) / max(count, 1))
    return np.array(values)


def test_values_and_slopes_of_multibox():
    offsets, logits, classes, target = drawn()
    assert float(losses.multibox(offsets, logits, classes, target)) == pytest.approx(
        by_equations(offsets, logits, classes, target).mean()
    )
    check_slopes(losses.multibox, offsets, logits, constants=(classes, target))


def test_multibox_weights_images():
    arrays = drawn()
    weights = np.array([2.0, 0.0, 0.5])
    expected = (by_equations(*arrays) * weights).mean()
    assert float(losses.multibox(*arrays, sample_weight=weights)) == pytest.approx(expected)


@given(
    shape=hnp.array_shapes(min_dims=3, max_dims=4, max_side=4),
    squared=st.booleans(),
    smooth=st.sampled_from([0.01, 1.0]),
)
def test_values_and_slopes_of_dice(shape, squared, smooth):
    rng = np.random.default_rng(shape)
    p, t = rng.random(shape), np.round(rng.random(shape))

    def ours(*x, **k):
        return losses.dice(*x, squared=squared, smooth=smooth, **k)

    check_slopes(ours, p, constants=(t,))
    each = [
        1 - (2 * (a * b).sum() + smooth) / ((a**q).sum() + (b**q).sum() + smooth)
        for i in range(shape[0])
        for c in range(shape[-1])
        for a, b, q in [(p[i, ..., c], t[i, ..., c], 2 if squared else 1)]
    ]
    assert float(ours(p, t)) == pytest.approx(np.mean(each))


def test_dice_of_perfect_and_empty_masks_is_zero():
    t = np.round(np.random.default_rng(0).random((2, 4, 4, 1)))
    assert float(losses.dice(t, t)) == pytest.approx(0)
    assert float(losses.dice(0 * t, 0 * t)) == 0


def test_dice_of_no_samples_has_a_gradient():
    x = Tensor(np.zeros((0, 4, 2)), requires_grad=True)
    losses.dice(x, np.zeros((0, 4, 2))).backward()
    assert x.grad.shape == (0, 4, 2)


def images(*shape, seed=0):
    """Return numbers from 0 to 1, two images not too different."""
    rng = np.random.default_rng([seed, *shape])
    first = rng.random(shape)
    return first, np.clip(first + 0.2 * rng.normal(size=shape), 0, 1)


@given(
    n=st.integers(1, 2),
    size=st.tuples(st.integers(11, 20), st.integers(11, 20)),
    channels=st.integers(1, 3),
    scale=st.sampled_from([1.0, 80.0]),
)
def test_ssim_is_scikit_images(n, size, channels, scale):
    a, b = (scale * x for x in images(n, *size, channels))
    expected = np.mean(
        [
            structural_similarity(
                a[i], b[i], data_range=scale, channel_axis=-1,
                gaussian_weights=True, sigma=1.5, use_sample_covariance=False,
            )
            for i in range(n)
        ]
    )  # fmt: skip
    value = losses.ssim(a, b, data_range=scale)
    assert float(value) == pytest.approx(1 - expected, abs=1e-9)
    single = losses.ssim(a.astype("f4"), b.astype("f4"), data_range=scale)
    assert single.dtype == np.float32
    assert float(single) == pytest.approx(1 - expected, abs=2e-5)


@given(
    shape=st.sampled_from([(1, 7, 8, 1), (2, 6, 5, 2), (2, 2, 5, 7, 1), (2, 2, 5, 5, 2)]),
    window=st.sampled_from([1, 3, 5]),
)
def test_slopes_of_ssim(shape, window):
    def ours(*x, **k):
        return losses.ssim(*x, window=window, sigma=0.8, **k)

    check_slopes(ours, *images(*shape))


def test_equal_images_far_from_zero_lose_nothing_in_float32():
    a, _ = images(1, 32, 32, 1)
    a = (1000 + a).astype("f4")
    assert float(losses.ssim(a, a)) == pytest.approx(0, abs=1e-6)
