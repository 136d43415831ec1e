"""Dice as a module."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from daskdl import nn
from daskdl.ops import losses as ops
from tests.daskdl.lossmeans import check_module


@pytest.mark.parametrize("settings", [{}, {"smooth": 0.1}, {"squared": True}])
def test_it_is_its_operation(settings):
    p = np.random.default_rng(0).random((3, 4, 2))
    check_module(nn.DiceLoss(**settings), partial(ops.dice, **settings), p, np.round(p[::-1]))
