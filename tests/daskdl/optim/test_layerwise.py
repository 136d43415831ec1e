"""LARS and LAMB take norms by parameter, of the whole vector or added up over slices."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import SettingsError
from daskdl.optim import LAMB, LARS
from tests.daskdl.optim import runs

each = pytest.mark.parametrize("method", [LARS(0.1), LAMB(0.1)], ids=["LARS", "LAMB"])


@each
def test_before_it_knows_a_layout_it_says_so(method):
    w = runs.start()
    with pytest.raises(SettingsError, match=r"L\w+: expected on\(Layout\.of\(model\)\) before"):
        method.init(runs.SIZE)
    with pytest.raises(SettingsError, match=r"L\w+: expected on\(Layout\.of\(model\)\) before"):
        method.update(w, w, {"mean": w, "square": w, "velocity": w}, 0)
    with pytest.raises(SettingsError, match="of the 37 numbers of its layout, found 36"):
        method.on(runs.LAYOUT).init(36)


@each
def test_slices_step_alike_when_sums_are_added_up(method):
    runs.check_joint_slices(method.on(runs.LAYOUT))
    assert not method.by_element


@each
def test_each_parameter_steps_by_itself(method):
    w, layout = runs.start(), runs.LAYOUT
    g = runs.gradients(w, 0)
    whole = method.on(layout)
    before, _ = whole.update(w, g, whole.init(runs.SIZE), 0)
    g[:20] *= 1 + np.linspace(0, 1, 20, dtype=np.float32)
    after, _ = whole.update(w, g, whole.init(runs.SIZE), 0)
    np.testing.assert_array_equal(before[20:], after[20:])


@each
def test_norms_are_those_of_each_parameter(method):
    w = runs.start()
    found = method.on(runs.LAYOUT).squares_of(w)
    expected = [(part.astype(float) ** 2).sum() for part in np.split(w, [20, 25])]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
