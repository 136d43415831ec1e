"""Partitions: the results of each kind, and errors that name the partition."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from daskdl.data.recipe import Arrays
from daskdl.errors import DataError, PredictionError, ShapeError
from daskdl.nn import Linear, Module
from daskdl.predict import Predictor
from daskdl.predict.partitions import (
    naming,
    of_chunk,
    of_elements,
    of_frame,
    of_samples,
    only,
    rows_of,
    stacked,
)
from tests.daskdl.predict.networks import N, inputs

MODEL = Linear(3, 2, seed=1)


def test_an_error_of_ours_keeps_its_kind_and_says_where():
    with pytest.raises(ShapeError, match=r"^prediction, partition 3: Linear: expected an input"):
        of_chunk(np.zeros((4, 5), np.float32), Predictor(MODEL), (2,), (3, 0))


def test_any_other_exception_says_its_kind_and_where():
    with (
        pytest.raises(
            PredictionError, match=r"^prediction, partition 5: ZeroDivisionError: oh \(test_"
        ) as error,
        naming(5),
    ):
        raise ZeroDivisionError("oh")
    assert isinstance(error.value.__cause__, ZeroDivisionError)


def test_each_kind_of_partition_gives_the_same():
    x, predictor = inputs(), Predictor(MODEL, batch_size=10)
    expected = predictor(x)
    np.testing.assert_array_equal(of_chunk(x, predictor, expected.shape[1:], (0, 0)), expected)
    np.testing.assert_array_equal(np.stack(of_elements(iter(x), predictor, [0])), expected)
    elements = ({"x": row, "y": 0} for row in x)
    np.testing.assert_array_equal(np.stack(of_elements(elements, predictor, [0])), expected)
    frame = pd.DataFrame(x, index=2 * np.arange(N))
    result = of_frame(frame, predictor, {"number": 0})
    pd.testing.assert_frame_equal(result, pd.DataFrame(expected, index=frame.index))
    np.testing.assert_array_equal(of_samples(Arrays({"x": x}), predictor, (), 0), expected)


def test_samples_pass_their_functions_batch_by_batch():
    seen = []

    def half(batch, rng):
        seen.append((len(batch["x"]), rng.integers(1000)))
        return {"x": batch["x"] / 2}

    predictor = Predictor(MODEL, batch_size=20)
    for _ in range(2):
        result = of_samples(Arrays({"x": 2 * inputs()}), predictor, (half,), 7)
    np.testing.assert_array_equal(result, predictor(inputs()))
    assert [n for n, _ in seen] == [20, 20, 13] * 2
    assert seen[:3] == seen[3:]  # the same numbers are drawn again
    assert len(set(seen[:3])) == 3


def test_samples_have_x():
    with pytest.raises(DataError, match=r"partition 2: predict: expected samples with x, found"):
        of_samples(Arrays({"image": inputs()}), Predictor(MODEL), (), 2)


def test_a_partition_without_elements_has_no_results():
    assert of_elements(iter(()), Predictor(MODEL), [0]) == []


@pytest.mark.parametrize("wrong", [[[1.0, 2.0, 3.0], [1.0, 2.0]], [{"y": 1.0}]])
def test_elements_of_different_shapes_are_an_error(wrong):
    with pytest.raises(DataError, match="partition 4: predict: expected elements of a Bag that"):
        of_elements(wrong, Predictor(MODEL), [4])
    with pytest.raises(DataError):
        stacked(wrong)


def test_one_number_a_row_is_a_series_and_many_axes_are_an_error():
    class To(Module):
        def __init__(self, *shape):
            self.shape = shape

        def forward(self, x):
            return np.zeros((len(x), *self.shape), np.float32)

    frame = pd.DataFrame(inputs())
    assert isinstance(rows_of(frame, Predictor(To())), pd.Series)
    with pytest.raises(DataError, match=r"found results of shape \(53, 4, 5\); give the rows as"):
        rows_of(frame, Predictor(To(4, 5)))


def test_only_one_array_has_a_place():
    with pytest.raises(DataError, match=r"found 2 of shapes \[\(53, 3\), \(53, 3\)\]"):
        only((inputs(), inputs()))
