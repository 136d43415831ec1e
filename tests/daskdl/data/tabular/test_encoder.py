"""An encoder learns the columns of a table in one pass over any partitions."""

from __future__ import annotations

import json
from decimal import Decimal

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from daskdl.data import SampleSet
from daskdl.data.tabular import TableEncoder
from daskdl.data.tabular.columns import codes
from daskdl.errors import DataError, SettingsError

FRAME = pd.DataFrame(
    {
        "age": [20.0, np.nan, 40.0, 30.0, np.inf, 30.0],
        "rooms": [1, 2, 3, 4, 5, 6],
        "garden": [True, False, True, False, True, False],
        "city": ["Bonn", "Ulm", None, "Bonn", "Ulm", "Kiel"],
        "grade": pd.Categorical(["b", "a", "b", "b", "a", None]),
        "since": pd.to_datetime(
            ["2020-01-06", "2020-01-07", None, "2021-06-01", "2021-06-02", "2022-01-01"]
        ),
        "sold": ["yes", "no", "no", "yes", "yes", "no"],
    }
)


def lazy(partitions: int) -> dd.DataFrame:
    return dd.from_pandas(FRAME, npartitions=partitions, sort=False)


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 2, 6])
def test_any_partitions_give_the_same_encoder(partitions):
    alone = TableEncoder.fit(FRAME, target="sold")
    encoder = TableEncoder.fit(lazy(partitions), target="sold")
    assert encoder.classes == alone.classes == ("no", "yes")
    assert encoder.rows == alone.rows == (4, 4, 8)  # Bonn and Ulm, a and b, weekdays
    for name, values in alone.inputs(FRAME).items():
        np.testing.assert_allclose(encoder.inputs(FRAME)[name], values, rtol=1e-6, atol=1e-6)


def test_numbers_are_scaled_and_gaps_flagged():
    encoder = TableEncoder.fit(FRAME[["age", "rooms", "garden"]])
    numbers = encoder.inputs(FRAME)["numbers"]
    assert encoder.numbers == numbers.shape[1] == 4
    assert numbers.dtype == np.float32
    np.testing.assert_allclose(numbers[:, [0, 2, 3]].mean(0), 0, atol=1e-6)
    np.testing.assert_allclose(numbers[:, 2:].std(0), 1, atol=1e-6)
    assert numbers[:, 1].tolist() == [0, 1, 0, 0, 1, 0]  # NaN and infinity
    assert numbers[1, 0] == 0


def test_values_have_ids_of_which_0_is_unknown():
    encoder = TableEncoder.fit(FRAME[["city", "grade"]])
    ids = encoder.inputs(FRAME)["ids"]
    assert ids.dtype == np.int64
    assert ids[:, 0].tolist() == [1, 2, 3, 1, 2, 0]  # Kiel comes once
    assert ids[:, 1].tolist() == [1, 2, 1, 1, 2, 3]
    other = FRAME.assign(city="Rome", grade="z")
    assert encoder.inputs(other)["ids"].tolist() == [[0, 0]] * 6


def test_times_are_circles_and_weekdays():
    encoder = TableEncoder.fit(FRAME[["since"]])
    inputs = encoder.inputs(FRAME)
    assert inputs["ids"][:, 0].tolist() == [1, 2, 0, 2, 3, 6]
    assert inputs["numbers"].shape == (6, 4)  # no hours
    zoned = FRAME[["since"]].apply(lambda c: c.dt.tz_localize("UTC"))
    np.testing.assert_allclose(TableEncoder.fit(zoned).inputs(zoned)["numbers"], inputs["numbers"])


def test_numbers_may_be_categories():
    encoder = TableEncoder.fit(FRAME[["rooms"]], categories=["rooms"], rare=1)
    assert encoder.inputs(FRAME)["ids"][:, 0].tolist() == [1, 2, 3, 4, 5, 6]
    whole = FRAME[["rooms"]].astype("int32")
    assert encoder.inputs(whole)["ids"][:, 0].tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("dtype", ["object", "string", "category"])
def test_words_of_any_dtype_are_the_same(dtype):
    encoder = TableEncoder.fit(FRAME[["city"]])
    changed = FRAME[["city"]].astype(dtype)
    assert TableEncoder.fit(changed) == encoder
    assert encoder.inputs(changed)["ids"].tolist() == encoder.inputs(FRAME)["ids"].tolist()


def test_decimals_are_numbers_and_never_words():
    values = [Decimal("1.5"), Decimal("2.5"), None, Decimal("4.25")]
    arrow = pd.ArrowDtype(pa.decimal128(5, 2))
    frame = pd.DataFrame({"a": pd.array(values, arrow), "y": pd.array([*values[:2]] * 2, arrow)})
    floats = frame.astype({"a": float, "y": float})
    for table in (frame, dd.from_pandas(frame, npartitions=2)):
        encoder = TableEncoder.fit(table, target="y")
        assert encoder.plain() == TableEncoder.fit(floats, target="y").plain()
        for name, array in encoder(frame).arrays.items():
            np.testing.assert_array_equal(array, encoder(floats).arrays[name])
    objects = pd.DataFrame({"a": values, "y": [0, 1, 0, 1]})
    with pytest.raises(DataError, match=r"found Decimal\('1\.5'\); frame\.astype\({name: float}\)"):
        TableEncoder.fit(objects, target="y")


def test_objects_that_dask_makes_texts_of_are_known_in_pandas():
    frame = pd.DataFrame({"a": pd.Series([True, None, 7, "x"] * 3, dtype=object)})
    of_texts = TableEncoder.fit(dd.from_pandas(frame, npartitions=2))
    ids = of_texts(frame).arrays["x.ids"][:, 0]
    assert (ids > 0).all()
    np.testing.assert_array_equal(ids, of_texts(frame.astype("string")).arrays["x.ids"][:, 0])


def test_an_encoder_comes_back_from_plain_data():
    encoder = TableEncoder.fit(FRAME, target="sold")
    assert TableEncoder.from_plain(*json.loads(json.dumps(encoder.plain()))) == encoder
    columns = "6 columns (3 of number, 2 of category, 1 of date)"
    assert repr(encoder) == f"TableEncoder({columns} -> 'sold', 2 classes)"
    assert "2 values, such as Bonn, Ulm, some missing" in encoder._repr_html_()


@pytest.mark.parametrize("labels", [[3, 5, 5, 3, 3, 5], [True, False, False, True, True, False]])
def test_labels_of_any_type_are_numbered(labels):
    frame = FRAME.assign(sold=labels)
    samples = SampleSet.from_dataframe(frame, target="sold")
    assert samples.encoder.classes == tuple(sorted(set(labels)))
    wanted = [sorted(set(labels)).index(label) for label in labels]
    assert samples.head(6)["y"].tolist() == wanted


def test_floats_are_a_target_of_numbers():
    frame = FRAME.drop(columns="age").assign(price=[1.0, 2, 3, 4, 5, 6], w=1.0)
    samples = SampleSet.from_dataframe(frame, target="price", sample_weight="w")
    batch = samples.head(6)
    assert batch["y"].shape == (6, 1)
    assert "w" not in [c.name for c in samples.encoder.columns]
    assert batch["sample_weight"].tolist() == [1.0] * 6


def test_another_table_is_encoded_alike():
    train = SampleSet.from_dataframe(lazy(2), target="sold")
    test = SampleSet.from_dataframe(lazy(3), encoder=train.encoder)
    for name, values in train.head(6).items():
        np.testing.assert_array_equal(test.head(6)[name], values)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TableEncoder.fit(FRAME, target="price"), r"none called \['price'\]; there are"),
        (
            lambda: TableEncoder.fit(FRAME.assign(z=1j)),
            r"column 'z': expected numbers, words or times, found complex128; .* leave_out=\['z'\]",
        ),
        (
            lambda: TableEncoder.fit(FRAME, target="sold").inputs(FRAME.drop(columns="age")),
            r"expected the columns that it was fitted to, found none called \['age'\]",
        ),
        (
            lambda: TableEncoder.fit(FRAME, target="sold")(FRAME.assign(sold="maybe"), "part 3"),
            r"part 3, row 0, column 'sold': expected one of 'no', 'yes', .* found 'maybe', and 5",
        ),
        (
            lambda: TableEncoder.fit(FRAME[["age"]]).inputs(
                FRAME[["since"]].set_axis(["age"], axis=1)
            ),
            r"column 'age': expected numbers, as it was fitted to, found datetime64",
        ),
        (
            lambda: TableEncoder.fit(FRAME.rename(columns={"age": 0})),
            r"columns called by texts, found 0; frame.columns = ",
        ),
        (
            lambda: TableEncoder.fit(pd.concat([FRAME, FRAME[["age"]]], axis=1)),
            r"each column once, found several called \['age'\]",
        ),
        (
            lambda: TableEncoder.fit(FRAME, target="since"),
            r"expected classes that are texts, .* found datetime64.*astype\(str\)",
        ),
        (
            lambda: codes(pd.Series([[1, 2], [3]], name="c"), ["a"]),
            r"column 'c': expected one text, .*leave_out=\['c'\]",
        ),
    ],
)
def test_tables_that_do_not_fit_are_refused(call, message):
    with pytest.raises(DataError, match=message):
        call()


def test_an_unknown_task_is_refused():
    with pytest.raises(SettingsError, match="task: expected 'auto', 'classes' or 'numbers'"):
        TableEncoder.fit(FRAME, target="sold", task="ranks")
