"""Checks: NaN, labels out of range and wrong shapes are named, counted, and left out if wanted."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.data import Ragged, SampleSet
from daskdl.errors import DataError
from tests.daskdl.data.epochs import everything


def samples():
    x = np.zeros((6, 2), np.float32)
    x[1, 1] = np.nan
    boxes = Ragged.of([np.zeros((n, 4)) for n in (1, 0, 2, 1, 1, 3)])
    boxes.values[2, 0] = np.inf  # of the third
    return SampleSet.from_arrays(
        id=np.arange(6), x=x, y=np.array([0, 1, 2, -1, 9, 2]), boxes=boxes, partitions=2
    )


def test_bad_samples_are_left_out_and_named():
    checked = samples().check(classes={"y": 3}, on_error="skip")
    assert not checked.is_counted
    assert everything(checked.map(lambda batch: {"id": batch["id"]}))["id"].tolist() == [0, 5]
    assert checked.bad == (
        "partition 0, sample 1 (x is not finite)",
        "partition 0, sample 2 (boxes is not finite)",
        "partition 1, sample 0 (y = -1, not from 0 to 2)",
        "partition 1, sample 1 (y = 9, not from 0 to 2)",
    )


def test_shapes():
    some = samples().check(shapes={"boxes": (1, None), "x": (2,)}, finite=False, on_error="skip")
    assert everything(some)["id"].tolist() == [0, 3, 4]
    assert some.bad[0] == "partition 0, sample 1 (boxes of shape (0, 4), not (1, None))"


def test_a_bad_sample_is_an_error():
    checked = samples().check(finite=False, classes={"y": 3})
    assert checked.is_counted
    with pytest.raises(DataError, match=r"partition 1, sample 0 \(y = -1.* and 1 more in this"):
        everything(checked)
    assert len(everything(samples().check(finite=False))["id"]) == 6
    with pytest.raises(DataError, match=r"expected \['z'\] in every sample, found \['boxes',"):
        everything(samples().check(classes={"z": 3}))
