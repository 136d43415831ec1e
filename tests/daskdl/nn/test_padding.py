"""The padding of convolution layers."""

from __future__ import annotations

import pytest

from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.padding import Padding


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
