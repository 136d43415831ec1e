"""Attention as an operation: gradients, PyTorch's numbers, masks, what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import ops
from daskdl.errors import ShapeError
from tests.daskdl.gradients import check_gradient, normal

sizes = st.integers(1, 4)


@settings(max_examples=15)
@given(t=sizes, s=sizes, c=sizes, d=sizes, causal=st.booleans(), masked=st.booleans())
def test_gradient_and_agreement(t, s, c, d, causal, masked, torch):
    arrays = normal(2, 3, t, c), normal(2, 3, s, c, seed=1), normal(2, 3, s, d, seed=2)
    mask = np.random.default_rng(t).random((2, 1, t, s)) < 0.5
    mask[..., 0] = True
    mask = mask if masked else None
    check_gradient(lambda *qkv: ops.attention(*qkv, mask=mask, causal=causal), *arrays)
    seen = np.tri(t, s, dtype=bool) if causal else np.ones((t, s), bool)
    expected = torch.nn.functional.scaled_dot_product_attention(
        *map(torch.tensor, arrays), attn_mask=torch.tensor(seen if mask is None else seen & mask)
    )
    np.testing.assert_allclose(
        ops.attention(*arrays, mask=mask, causal=causal).data, expected, atol=1e-12
    )


def test_single_precision_stays():
    x = normal(2, 3, 4).astype("f4")
    y = ops.attention(x, x, x, causal=True, rate=0.5, seed=1)
    assert y.dtype == np.float32
    np.testing.assert_array_equal(
        ops.attention(x, x, x, causal=True, rate=0.5, seed=1).data, y.data
    )


def test_what_does_not_fit_is_said():
    x = np.ones((2, 3, 4))
    with pytest.raises(ShapeError, match=r"found \(2, 3, 4\), \(2, 3, 3\) and \(2, 3, 4\)"):
        ops.attention(x, x[..., :3], x)
    with pytest.raises(ShapeError, match="mask: expected bool, found float64"):
        ops.attention(x, x, x, mask=np.ones((3, 3)))


@pytest.mark.parametrize("mask", [None, np.ones((4, 3, 3), bool)])
def test_what_does_not_broadcast_is_named(mask):
    query, key = normal(2, 3, 4), normal(2 if mask is not None else 3, 3, 4)
    with pytest.raises(ShapeError, match=r"leading axes, and a mask, that .* query \(2, 3, 4\)"):
        ops.attention(query, key, key, mask=mask)
