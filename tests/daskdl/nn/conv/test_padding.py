"""Padding and cropping, and the border that a convolution adds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import nn
from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.conv.padding import Padding
from tests.daskdl.gradients import normal
from tests.daskdl.nn.beside_pytorch import check_like_pytorch


@pytest.mark.parametrize(
    ("padding", "lengths", "expected"),
    [
        (1, (7, 7), (1, 1, 1, 1)),
        ((1, 2), (7, 7), (1, 1, 2, 2)),
        ((0, 1, 2, 3), (7, 7), (0, 1, 2, 3)),
        ("same", (7, 8), (2, 2, 0, 1)),
    ],
)
def test_zeros_on_each_side(padding, lengths, expected):
    assert Padding("Layer", padding, (3, 3), (1, 2), (2, 1)).of(lengths) == expected


def test_causal_zeros_lie_before():
    assert Padding("Layer", "causal", (3,), (1,), (2,)).of((5,)) == (4, 0)


def test_what_does_not_fit_is_said():
    with pytest.raises(SettingsError, match="expected causal only along one axis"):
        Padding("Layer", "causal", (3, 3), (1, 1), (1, 1))
    with pytest.raises(ShapeError, match=r"Layer: expected an image of at least \(5, 3\) after"):
        Padding("Layer", 1, (3, 3), (1, 1), (2, 1)).of((2, 9))
    with pytest.raises(ShapeError, match=r"Layer\.groups: expected a divisor of the 4 .* found 3"):
        Padding("Layer", 1, (3, 3), (1, 1), (2, 1)).share(4, 6, 3)


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


def test_what_does_not_fit_is_said_border():
    with pytest.raises(SettingsError, match="expected constant, reflect or edge, found 'wrap'"):
        nn.Pad(1, mode="wrap")
    with pytest.raises(ShapeError, match=r"Pad: expected an input of 4 axes.*found \(2, 3\)"):
        nn.Pad(1)(np.ones((2, 3)))
    with pytest.raises(ShapeError, match=r"Crop: expected axes longer .*found \(1, 4, 3, 2\)"):
        nn.Crop((2, 1))(np.ones((1, 4, 3, 2)))
    with pytest.raises(ShapeError, match="expected to reflect less"):
        nn.Pad(4, mode="reflect")(np.ones((1, 4, 3, 2)))
