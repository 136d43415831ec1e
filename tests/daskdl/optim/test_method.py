"""What every optim method keeps."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from daskdl.errors import SettingsError
from daskdl.optim import SGD, Adam
from daskdl.optim.method import in_range
from tests.daskdl.optim.runs import descend, start

METHODS = [SGD(0.1), SGD(0.1, momentum=0.9), Adam(0.05), Adam(0.05, warmup=5, decay_over=30)]


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_it_goes_downhill(method):
    """The loss of tests.daskdl.optim.runs is least at 1."""
    before, after = (np.abs(w - 1).mean() for w in (start(), descend(method, steps=60)))
    assert after < 0.5 * before


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_it_travels_between_processes_and_compares_by_value(method):
    twin = pickle.loads(pickle.dumps(method))
    assert twin == method
    np.testing.assert_array_equal(descend(twin), descend(method))


def test_in_range_names_method_setting_and_value():
    in_range(SGD(), "rate", 0.0, 0, 1)
    with pytest.raises(SettingsError, match=r"SGD: expected 0 <= rate < 1, found 1$"):
        in_range(SGD(), "rate", 1, 0, 1)
