"""Layer normalisation beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import nn
from daskdl.errors import ShapeError
from tests.daskdl.nn.beside_pytorch import check_like_pytorch


@settings(max_examples=15)
@given(shape=st.lists(st.integers(2, 4), min_size=1, max_size=2), affine=st.booleans())
def test_agrees_with_pytorch(shape, affine, torch):
    ours, theirs = nn.LayerNorm(shape, 1e-3, affine), torch.nn.LayerNorm(shape, 1e-3, affine)
    check_like_pytorch(torch, ours, theirs, (2, 3, *shape), channels=False, tolerance=3e-5)


def test_other_inputs_are_refused():
    with pytest.raises(ShapeError, match=r"LayerNorm: .* last axes are \(3, 4\), found \(2, 4, 4"):
        nn.LayerNorm((3, 4))(np.ones((2, 4, 4), "f4"))
