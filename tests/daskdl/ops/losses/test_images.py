"""Losses of images: boxes, overlap, similarity."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from skimage.metrics import structural_similarity

from daskdl.errors import SettingsError, ShapeError
from daskdl.ops import losses
from daskdl.tensor import Tensor
from tests.daskdl.lossmeans import check_slopes


def drawn(images=3, priors=30, classes=4):
    rng = np.random.default_rng(0)
    found = rng.integers(0, classes, (images, priors)) * (rng.random((images, priors)) < 0.3)
    found[1] = 0  # nothing to find
    return (
        rng.normal(size=(images, priors, 4)),
        rng.normal(size=(images, priors, classes)),
        found,
        rng.normal(size=(images, priors, 4)),
    )


def plain(offsets, logits, classes, target, ratio=3.0):
    """Equations 1 to 3 of the paper for each image."""
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


def test_values_and_slopes():
    offsets, logits, classes, target = drawn()
    assert float(losses.multibox(offsets, logits, classes, target)) == pytest.approx(
        plain(offsets, logits, classes, target).mean()
    )
    check_slopes(losses.multibox, offsets, logits, constants=(classes, target))


def test_an_image_counts_as_its_weight_says():
    arrays = drawn()
    weights = np.array([2.0, 0.0, 0.5])
    expected = (plain(*arrays) * weights).mean()
    assert float(losses.multibox(*arrays, sample_weight=weights)) == pytest.approx(expected)


def test_arrays_of_other_priors_are_refused():
    offsets, logits, classes, target = drawn()
    with pytest.raises(ShapeError, match=r"multibox: expected .*\(3, 29\); match the boxes"):
        losses.multibox(offsets, logits, classes[:, 1:], target)


@given(
    shape=hnp.array_shapes(min_dims=3, max_dims=4, max_side=4),
    squared=st.booleans(),
    smooth=st.sampled_from([0.01, 1.0]),
)
def test_values_and_slopes_overlap(shape, squared, smooth):
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


def test_perfect_and_empty_are_zero():
    t = np.round(np.random.default_rng(0).random((2, 4, 4, 1)))
    assert float(losses.dice(t, t)) == pytest.approx(0)
    assert float(losses.dice(0 * t, 0 * t)) == 0


def test_a_matrix_has_no_pixels():
    with pytest.raises(ShapeError, match=r"dice: expected shape .* found \(2, 3\)"):
        losses.dice(np.zeros((2, 3)), np.zeros((2, 3)))


def test_of_no_samples_there_is_a_gradient():
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
def test_it_is_scikit_images(n, size, channels, scale):
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
    found = losses.ssim(a, b, data_range=scale)
    assert float(found) == pytest.approx(1 - expected, abs=1e-9)
    single = losses.ssim(a.astype("f4"), b.astype("f4"), data_range=scale)
    assert single.dtype == np.float32
    assert float(single) == pytest.approx(1 - expected, abs=2e-5)


@given(
    shape=st.sampled_from([(1, 7, 8, 1), (2, 6, 5, 2), (2, 2, 5, 7, 1), (2, 2, 5, 5, 2)]),
    window=st.sampled_from([1, 3, 5]),
)
def test_slopes(shape, window):
    def ours(*x, **k):
        return losses.ssim(*x, window=window, sigma=0.8, **k)

    check_slopes(ours, *images(*shape))


def test_equal_images_far_from_zero_lose_nothing_in_float32():
    a, _ = images(1, 32, 32, 1)
    a = (1000 + a).astype("f4")
    assert float(losses.ssim(a, a)) == pytest.approx(0, abs=1e-6)


def test_mistakes():
    with pytest.raises(ShapeError, match=r"at least 11 x 11 pixels, found shape \(1, 10, 20, 1\)"):
        losses.ssim(np.zeros((1, 10, 20, 1)), np.zeros((1, 10, 20, 1)))
    with pytest.raises(SettingsError, match=r"odd window, .* found 4, 1\.5 and 1\.0"):
        losses.ssim(np.zeros((1, 12, 12, 1)), np.zeros((1, 12, 12, 1)), window=4)
