"""Steps that may change weights and state: the same bits, and no other memory where it matters."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import optim
from daskdl.optim import Layout
from tests.daskdl.optim.runs import LAYOUT, SIZE, STEPS, gradients, start

IN_PLACE = [
    optim.SGD(0.1, momentum=0.9),
    optim.Adadelta(),
    optim.Adagrad(0.1),
    optim.Adam(0.1, amsgrad=True),
    optim.Adamax(0.1),
    optim.AdamW(0.1),
    optim.Ftrl(0.1),
    optim.LARS(0.1),
    optim.Nadam(0.1),
    optim.RMSprop(0.01, centered=True, momentum=0.9),
    optim.ClipNorm(optim.Adam(0.1), 1.0),
    optim.ClipValue(optim.SGD(0.1), 0.5),
    optim.EMA(optim.SGD(0.1)),
    optim.Accumulate(optim.Adam(0.1), over=3),
    optim.Groups(optim.AdamW(0.1), (optim.Group("*.bias", rate=0.5, weight_decay=0.0),)),
]
ANY = [*IN_PLACE, optim.LAMB(0.1), optim.LBFGS(0.1)]


@pytest.mark.parametrize("layout", [LAYOUT, Layout(LAYOUT.names, LAYOUT.shapes, ("first.bias",))])
@pytest.mark.parametrize("method", ANY, ids=repr)
def test_it_goes_the_same_way(method, layout):
    if isinstance(method, optim.LBFGS) and layout.frozen:
        pytest.skip("has no groups")
    method = method.on(layout)
    pure, over = start(), start()
    states = method.init(SIZE), method.init(SIZE)
    for i in range(STEPS):
        pure, first = method.update(pure, gradients(pure, i), states[0], i)
        over, second = method.update(over, gradients(over, i), states[1], i, overwrite=True)
        states = first, second
        np.testing.assert_array_equal(over, pure)
        assert first.keys() == second.keys()
        for name in first:
            np.testing.assert_array_equal(second[name], first[name], name)


@pytest.mark.parametrize("method", IN_PLACE, ids=repr)
def test_weights_stay_where_they_are(method):
    method, weights = method.on(LAYOUT), start()
    state, before = method.init(SIZE), weights
    for i in range(3):
        weights, state = method.update(weights, gradients(weights, i), state, i, overwrite=True)
        assert np.shares_memory(weights, before)
    assert (weights != start()).any()
