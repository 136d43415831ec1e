"""Padding and cropping beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import nn
from daskdl.errors import SettingsError, ShapeError
from tests.daskdl.gradients import normal
from tests.daskdl.nn.beside_pytorch import check_like_pytorch


@settings(max_examples=15)
@given(
    widths=st.tuples(*[st.integers(0, 3)] * 4),
    mode=st.sampled_from(["constant", "reflect", "edge"]),
)
def test_padding_agrees_with_pytorch(widths, mode, torch):
    above, below, left, right = widths

    def theirs(x):
        name = "replicate" if mode == "edge" else mode
        value = {"value": 2.5} if mode == "constant" else {}
        return torch.nn.functional.pad(x, (left, right, above, below), mode=name, **value)

    check_like_pytorch(torch, nn.Pad(widths, 2.5, mode), theirs, (2, 4, 5, 3))


@given(widths=st.tuples(*[st.integers(0, 2)] * 6))
def test_cropping_undoes_padding(widths):
    x = normal(2, 3, 4, 3, 2)
    padded = nn.Pad(widths, axes=3)(x)
    np.testing.assert_array_equal(nn.Crop(widths, axes=3)(padded).data, x)


def test_what_does_not_fit_is_said():
    with pytest.raises(SettingsError, match="expected constant, reflect or edge, found 'wrap'"):
        nn.Pad(1, mode="wrap")
    with pytest.raises(ShapeError, match=r"Pad: expected an input of 4 axes.*found \(2, 3\)"):
        nn.Pad(1)(np.ones((2, 3)))
    with pytest.raises(ShapeError, match=r"Crop: expected axes longer .*found \(1, 4, 3, 2\)"):
        nn.Crop((2, 1))(np.ones((1, 4, 3, 2)))
    with pytest.raises(ShapeError, match="expected to reflect less"):
        nn.Pad(4, mode="reflect")(np.ones((1, 4, 3, 2)))
