"""Convolution of volumes as an operation: gradients, and each other's adjoint."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import ops
from daskdl.errors import ShapeError
from tests.daskdl.gradients import check_gradient, normal

triples = st.tuples(*[st.integers(1, 2)] * 3)


@settings(max_examples=8)
@given(
    kernel=triples,
    stride=triples,
    dilation=triples,
    pad=st.tuples(*[st.integers(0, 1)] * 6),
    groups=st.sampled_from([1, 2]),
)
def test_gradients_and_adjoints(kernel, stride, dilation, pad, groups):
    given_ = {"stride": stride, "pad": pad, "dilation": dilation, "groups": groups}
    x, w = normal(2, 4, 3, 4, 2), normal(4, *kernel, 2 // groups, seed=1)
    check_gradient(lambda x, w, b: ops.conv3d(x, w, b, **given_), x, w, normal(4))
    y = ops.conv3d(x, w, None, **given_).data
    dy = normal(*y.shape, seed=2)
    reach = [
        (n - 1) * s - pad[2 * i] - pad[2 * i + 1] + (k - 1) * d + 1
        for i, (n, s, k, d) in enumerate(zip(y.shape[1:4], stride, kernel, dilation, strict=True))
    ]
    more = tuple(n - r for n, r in zip(x.shape[1:4], reach, strict=True))
    back = ops.conv_transpose3d(dy, w, None, output_pad=more, **given_).data
    assert back.shape == x.shape
    np.testing.assert_allclose((y * dy).sum(), (x * back).sum(), rtol=1e-9)
    check_gradient(
        lambda dy, w, b: ops.conv_transpose3d(dy, w, b, output_pad=more, **given_), dy, w, normal(2)
    )


def test_what_does_not_fit_is_said():
    x, w = np.ones((1, 2, 3, 3, 2)), np.ones((4, 1, 2, 2, 2))
    with pytest.raises(ShapeError, match=r"conv3d: expected .* found \(1, 2, 3, 3, 2\) and \(4, 1"):
        ops.conv3d(x, w[..., :1], None)
    with pytest.raises(ShapeError, match="conv_transpose3d: expected x"):
        ops.conv_transpose3d(x, w, None)
    with pytest.raises(ShapeError, match="leaves nothing of the result"):
        ops.conv_transpose3d(np.ones((1, 2, 3, 3, 4)), w, None, pad=(1, 1, 0, 0, 0, 0))
