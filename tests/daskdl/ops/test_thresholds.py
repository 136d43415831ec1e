"""Activations with thresholds as operations."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from daskdl.errors import ShapeError
from tests.daskdl.gradients import check_gradient, normal

ALL = {
    "threshold": ({"threshold": 0.3, "value": 2.0}, "threshold", (0.3, 2.0)),
    "hard_shrink": ({"edge": 0.4}, "hardshrink", (0.4,)),
    "soft_shrink": ({"edge": 0.4}, "softshrink", (0.4,)),
    "softsign": ({}, "softsign", ()),
}


@pytest.mark.parametrize("name", ALL)
def test_gradient_and_edges(name, torch):
    settings, theirs, arguments = ALL[name]
    check_gradient(lambda t: getattr(ops, name)(t, **settings), normal(4, 5))
    x = np.array([-np.inf, -0.4, -0.3, 0, 0.3, 0.4, 1, np.inf, np.nan])
    expected = getattr(torch.nn.functional, theirs)(torch.tensor(x), *arguments).numpy()
    with np.errstate(invalid="ignore"):
        found = getattr(ops, name)(x, **settings).data
    finite = np.isfinite(x)
    np.testing.assert_allclose(found[finite], expected[finite])
    assert np.isnan(found[-1]) == np.isnan(expected[-1])
    with pytest.raises(ShapeError, match=f"{name}: expected x of float32 or float64"):
        getattr(ops, name)(np.arange(3), **settings)
