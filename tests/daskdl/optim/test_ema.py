"""EMA against PyTorch's averaged model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskdl.errors import SettingsError
from daskdl.optim import EMA, SGD
from tests.daskdl.optim import runs


@runs.few
@given(decay=st.floats(0, 0.999))
def test_agrees_with_pytorch(decay, torch):
    from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

    model = torch.nn.Linear(runs.SIZE, 1, bias=False)
    averaged = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(decay))
    method, w = EMA(SGD(0.3), decay), runs.start()
    state = method.init(runs.SIZE)
    for i in range(runs.STEPS):
        w, state = method.update(w, runs.gradients(w, i), state, i)
        with torch.no_grad():
            model.weight[0] = torch.tensor(w)
        averaged.update_parameters(model)
        expected = averaged.module.weight.detach().numpy()[0]
        np.testing.assert_allclose(method.averaged(state), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(w, runs.descend(SGD(0.3)))


@runs.few
@given(points=runs.cuts)
def test_slices_have_the_bits_of_the_whole(points):
    runs.check_pure(EMA(SGD(0.1, 0.9), 0.5))
    runs.check_slices(EMA(SGD(0.1, 0.9), 0.5), points)


def test_a_decay_of_one_is_refused():
    with pytest.raises(SettingsError, match="EMA: expected 0 <= decay < 1, found 1"):
        EMA(SGD(), 1)
