"""The bilinear layer beside PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskdl import nn
from daskdl.errors import ShapeError
from tests.daskdl.nn.beside_pytorch import check_like_pytorch

sizes = st.integers(1, 5)


@settings(max_examples=10)
@given(n=sizes, a=sizes, b=sizes, out=sizes, bias=st.booleans())
def test_agrees_with_pytorch(n, a, b, out, bias, torch):
    ours, theirs = nn.Bilinear(a, b, out, bias), torch.nn.Bilinear(a, b, out, bias)
    check_like_pytorch(torch, ours, theirs, (n, a), (n, b), channels=False)


def test_other_inputs_are_refused():
    with pytest.raises(ShapeError, match=r"Bilinear: expected .* found \(2, 3\) and \(2, 3\)"):
        nn.Bilinear(3, 4, 5)(np.ones((2, 3), "f4"), np.ones((2, 3), "f4"))
