"""Structural similarity as a module."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from daskdl import nn
from daskdl.ops import losses as ops
from tests.daskdl.lossmeans import check_module


@pytest.mark.parametrize("settings", [{}, {"data_range": 2.0}, {"window": 5}, {"sigma": 1.0}])
def test_it_is_its_operation(settings):
    x, y = np.random.default_rng(0).random((2, 2, 12, 13, 2))
    check_module(nn.SSIMLoss(**settings), partial(ops.ssim, **settings), x, y)
