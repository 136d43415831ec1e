"""Samples where flows point, and their projection: by the paper's formula, and slopes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.kernels.recurrent import trajgru as links
from daskdl.kernels.runtime.threads import thread_budget

sides = st.integers(1, 6)


def hats(n, at):
    """Return the weight of each of n pixels at a position: max(0, 1 - distance)."""
    return np.maximum(0, 1 - np.abs(np.arange(n) - at))


def samples(image, flows):
    """Return the samples (pixels, L * C) by the paper's sum over the whole image."""
    n, height, width, channels = image.shape
    n_links = flows.shape[3] // 2
    result = np.zeros((n, height, width, n_links, channels))
    for s, i, j, link in np.ndindex(result.shape[:4]):
        across, down = flows[s, i, j, 2 * link : 2 * link + 2]
        weights = np.outer(hats(height, i + down), hats(width, j + across))
        result[s, i, j, link] = np.einsum("yx,yxc->c", weights, image[s])
    return result.reshape(-1, n_links * channels)


def draw(n, height, width, channels, n_links, k, dtype=np.float64):
    rng = np.random.default_rng([n, height, width, channels])
    image = rng.normal(size=(n, height, width, channels))
    flows = 2 * rng.normal(size=(n, height, width, 2 * n_links))
    weight = rng.normal(size=(n_links * channels, k))
    return [a.astype(dtype) for a in (image, flows, weight)]


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(n=st.integers(0, 3), height=sides, width=sides, channels=st.integers(1, 9))
def test_projection_is_the_papers_sum(dtype, n, height, width, channels):
    image, flows, weight = draw(n, height, width, channels, 2, 3, dtype)
    sums = np.ones((n * height * width, 5), dtype)
    links.project(image, flows, weight, sums)
    expected = 1 + samples(image.astype(float), flows.astype(float)) @ weight
    np.testing.assert_allclose(sums[:, 2:], expected, atol=500 * np.finfo(dtype).eps)
    assert (sums[:, :2] == 1).all()


@given(n=st.integers(1, 3), height=sides, width=sides, channels=st.integers(1, 5))
def test_gradient_is_the_slope(n, height, width, channels):
    image, flows, weight = arrays = draw(n, height, width, channels, 2, 3)
    rng = np.random.default_rng(1)
    d_sums = rng.normal(size=(n * height * width, 4))
    toward = [rng.normal(size=a.shape) for a in arrays]
    d_image = np.zeros_like(image)
    d_flows, d_weight = links.project_gradient(
        image, flows, np.ascontiguousarray(weight.T), d_sums, d_image
    )
    found = (d_image, d_flows, d_weight.T)
    analytic = sum((d * t).sum() for d, t in zip(found, toward, strict=True))

    def value(step):
        a, b, c = (x + step * t for x, t in zip(arrays, toward, strict=True))
        return (samples(a, b) @ c * d_sums[:, 1:]).sum()

    slope = (value(1e-7) - value(-1e-7)) / 2e-7
    assert slope == pytest.approx(analytic, rel=1e-5, abs=1e-5)


def test_two_threads_agree_with_one(monkeypatch):
    monkeypatch.setattr(links, "BLOCK", 1)  # so that parts are of 16 pixels
    image, flows, weight = draw(2, 5, 7, 3, 2, 4)
    results = []
    for threads in (1, 2):
        with thread_budget(threads):
            sums, d_image = np.zeros((70, 4)), np.ones_like(image)
            links.project(image, flows, weight, sums)
            gradients = links.project_gradient(
                image, flows, np.ascontiguousarray(weight.T), sums, d_image
            )
        results.append([sums, d_image, *gradients])
    for one, two in zip(*results, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-10)


@pytest.mark.slow
def test_far_away_is_zero_and_not_a_number_shows():
    image = np.ones((1, 3, 3, 2), np.float32)
    flows = np.zeros((1, 3, 3, 2), np.float32)
    flows[0, 0, 0], flows[0, 0, 1], flows[0, 0, 2] = 1e30, -np.inf, np.nan
    flows[0, 1, 0, 0], flows[0, 1, 1, 1], flows[0, 1, 2] = -1, 2, (1, -1)
    sums = np.zeros((9, 2), np.float32)
    links.project(image, flows, np.eye(2, dtype="f4"), sums)
    np.testing.assert_array_equal(sums[:, 0], [0, 0, np.nan, 0, 0, 0, 1, 1, 1])
    d_image = np.zeros_like(image)
    d_flows, _ = links.project_gradient(image, flows, np.eye(2, dtype="f4"), sums, d_image)
    assert not d_flows[0, 0, :2].any()
    assert np.isnan(d_flows[0, 0, 2]).all()
