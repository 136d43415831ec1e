"""Einstein's sums: gradients and PyTorch's numbers."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from daskdl.errors import ShapeError
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.peers import check_agreement

CASES = [
    ("ij,jk->ik", [(3, 4), (4, 2)]),
    ("nij,njk", [(2, 3, 4), (2, 4, 5)]),
    ("...ij,...jk->...ik", [(2, 3, 4), (2, 4, 5)]),
    ("...i,...i->...", [(2, 3, 4), (3, 4)]),
    ("ij->i", [(3, 4)]),
    ("ij->ji", [(3, 4)]),
    ("ii->i", [(3, 3)]),
    ("i,j,k->ki", [(2,), (3,), (4,)]),
    ("bij,bj->b", [(2, 3, 4), (2, 4)]),
]


@pytest.mark.parametrize(("equation", "shapes"), CASES)
def test_sums(equation, shapes, torch):
    arrays = [normal(*shape, seed=i) for i, shape in enumerate(shapes)]
    check_gradient(lambda *a: ops.einsum(*a, equation=equation), *arrays)
    check_agreement(
        torch,
        lambda *a: ops.einsum(*a, equation=equation),
        lambda *a: torch.einsum(equation, *a),
        *arrays,
    )


def test_what_does_not_fit_is_said():
    x = np.ones((3, 4))
    with pytest.raises(ShapeError, match="expected 2 arrays for 'ij,jk->ik', found 1"):
        ops.einsum(x, equation="ij,jk->ik")
    with pytest.raises(ShapeError, match="does not fit shapes"):
        ops.einsum(x, x, equation="ij,jk->ik")
