"""Local response normalisation: gradients, PyTorch's numbers, windows wider than the channels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl import ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.tensor import Tensor
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.layouts import layouts
from tests.daskdl.peers import check_agreement


@given(
    shape=st.lists(st.integers(1, 7), min_size=1, max_size=4).map(tuple),
    size=st.integers(1, 8),
    beta=st.sampled_from([0.75, 0.5, 1.3]),
)
def test_gradient(shape, size, beta):
    check_gradient(
        lambda x: ops.local_response_norm(x, size=size, alpha=0.5, beta=beta, k=1.5), normal(*shape)
    )


@pytest.mark.parametrize("size", [1, 2, 5, 9])
@pytest.mark.parametrize("beta", [0.75, 0.6])
@pytest.mark.parametrize("shape", [(2, 3, 5, 7), (1, 6, 5, 64), (2, 1, 1, 1100)])
def test_agrees_with_pytorch(shape, beta, size, torch):
    check_agreement(
        torch,
        lambda x: ops.local_response_norm(x, size=size, alpha=0.3, beta=beta, k=2.0),
        lambda x: torch.nn.functional.local_response_norm(x, size, 0.3, beta, 2.0),
        normal(*shape),
    )


def test_nan_and_infinity_reach_their_window_alone(torch):
    x = normal(2, 2, 3, 9).astype("f4")
    x[0, 1, 2, 3], x[1, 0, 0, 7] = np.nan, np.inf
    theirs = torch.nn.functional.local_response_norm(torch.tensor(x).permute(0, 3, 1, 2), 3)
    np.testing.assert_allclose(
        ops.local_response_norm(x, size=3).data, theirs.permute(0, 2, 3, 1).numpy(), atol=1e-6
    )


def test_any_layout_gives_the_same():
    x = normal(4, 3, 6).astype("f4")
    expected = ops.local_response_norm(x).data
    for other in layouts(x):
        np.testing.assert_allclose(ops.local_response_norm(other).data, expected, atol=1e-6)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_empty(shape):
    x = Tensor(np.zeros(shape, "f4"), requires_grad=True)
    y = ops.local_response_norm(x)
    y.backward(np.zeros(shape, "f4"))
    assert y.shape == x.grad.shape == shape


def test_what_does_not_fit_is_said():
    with pytest.raises(ShapeError, match=r"local_response_norm: x: .* found int64"):
        ops.local_response_norm(np.zeros((2, 3), "i8"))
    with pytest.raises(SettingsError, match="size: expected a whole number of at least 1, found 0"):
        ops.local_response_norm(np.zeros((2, 3)), size=0)
