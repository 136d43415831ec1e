from __future__ import annotations

import pickle

import numpy as np
import pytest

from daskdl.errors import SettingsError
from daskdl.scaling.workloads import WORKLOADS, workload


@pytest.mark.parametrize("name", ["lenet", "text"])
def test_a_model_takes_what_is_drawn_for_it(name) -> None:
    found = workload(name)
    model, loss, method = found.build()
    x, y = found.draw(np.random.default_rng(0), 2)
    assert np.isfinite(float(loss(model.eval()(x), y)))
    assert method.init(4) is not None


@pytest.mark.parametrize("found", WORKLOADS.values(), ids=WORKLOADS)
def test_samples_pickle_are_as_many_as_asked_for_and_the_same_again(found) -> None:
    draw = pickle.loads(pickle.dumps(found.draw))
    x, y = draw(np.random.default_rng(1), 3)
    assert len(x) == len(y) == 3
    for one, other in zip((x, y), found.draw(np.random.default_rng(1), 3), strict=True):
        np.testing.assert_array_equal(one, other)


def test_another_name_is_told_which_there_are() -> None:
    with pytest.raises(SettingsError, match=r"expected one of lenet, .*resnet152, found 'alexnet'"):
        workload("alexnet")
