"""TabularNet: a table of mixed columns to labels, in two lines, on workers, and out of a file."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import daskdl
from daskdl.data import SampleSet
from daskdl.errors import DataError, SettingsError
from daskdl.metrics import Accuracy
from daskdl.models import TabularNet
from daskdl.nn import CrossEntropyLoss, Linear, MSELoss, Sequential
from daskdl.optim import Adam
from daskdl.train import Trainer

RNG = np.random.default_rng(0)
N = 400
AGE = np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(50, 20, N))
CITY = RNG.choice(["Bonn", "Ulm", "Kiel"], N)
FRAME = pd.DataFrame(
    {
        "age": AGE,
        "city": CITY,
        "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 999, N), "D"),
        "sold": np.where((np.nan_to_num(AGE) > 50) ^ (CITY == "Ulm"), "yes", "no"),
    }
)


@pytest.mark.slow
def test_a_dask_dataframe_to_labels(tmp_path, client):
    frame = dd.from_pandas(FRAME, npartitions=3)
    model = TabularNet.of(frame, target="sold", hidden=(32,))
    trainer = Trainer(model, model.loss(), Adam(1e-2), metrics=[Accuracy()])
    trainer.fit(frame, y="sold", epochs=20, batch_size=40, progress=False, client=client)
    assert trainer.evaluate(frame, y="sold")["accuracy"] > 0.9
    metrics = model.evaluate(frame, [Accuracy()], client=client)  # its encoder knows the target
    assert metrics == model.evaluate(FRAME, [Accuracy()], y="sold")
    daskdl.save(model, tmp_path / "model.safetensors")
    loaded = daskdl.load(tmp_path / "model.safetensors")
    labels = loaded.predict_class(frame.drop(columns="sold"))
    assert labels.npartitions == 3
    labels = labels.compute(scheduler="sync")
    assert (labels == FRAME["sold"]).mean() > 0.9
    scores = loaded.predict(FRAME)
    assert list(scores.columns) == ["no", "yes"]
    assert (scores.idxmax(axis=1) == labels).all()


def test_an_onnx_file_takes_numbers_and_ids(tmp_path):
    pytest.importorskip("onnx")
    from daskdl.interop import onnx

    model = TabularNet.of(FRAME, target="sold", hidden=(8,))
    shapes = {"numbers": (model.encoder.numbers,), "ids": (len(model.encoder.rows),)}
    onnx.save(model, tmp_path / "table.onnx", shapes, ["float32", "int64"])
    graph = onnx.load(tmp_path / "table.onnx")
    inputs = model.encoder.inputs(FRAME)
    np.testing.assert_allclose(graph.predict(inputs), model.predict(inputs), rtol=1e-4, atol=1e-5)


def test_in_two_lines_of_samples():
    samples = SampleSet.from_dataframe(FRAME, target="sold")
    trainer = Trainer(TabularNet(samples.encoder, (32,)), CrossEntropyLoss(), Adam(1e-2))
    losses = trainer.fit(samples, epochs=5, batch_size=40, progress=False)["loss"]
    assert losses[-1] < losses[0]


@pytest.mark.slow
def test_numbers_are_predicted_in_their_unit():
    frame = FRAME[["city"]].assign(price=1e5 + 1e4 * (CITY == "Ulm"))
    model = TabularNet.of(frame, target="price", hidden=(8,), dropout=0.0)
    trainer = Trainer(model, model.loss(), Adam(1e-2))
    history = trainer.fit(
        frame, y="price", validation=frame, epochs=30, batch_size=40, progress=False
    )
    assert history.epochs[-1]["val_loss"] < history.epochs[0]["val_loss"]
    prices = model.predict(frame)
    assert prices.name == "price"
    np.testing.assert_allclose(prices, frame["price"], rtol=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("of", [np.asarray, lambda a: da.from_array(a, chunks=20)])
def test_arrays_are_fitted_as_they_are(of):
    x = RNG.normal(size=(60, 4)).astype(np.float32)
    y = x[:, :1]
    trainer = Trainer(Sequential(Linear(4, 1, seed=1)), MSELoss(), Adam(1e-2))
    losses = trainer.fit(of(x), of(y), validation=(x, y), epochs=30, batch_size=20, progress=False)[
        "loss"
    ]
    assert losses[-1] < losses[0]
    assert trainer.evaluate(of(x), of(y))["loss"] == pytest.approx(trainer.evaluate(x, y)["loss"])


def trainer_of_numbers() -> Trainer:
    return Trainer(Sequential(Linear(1, 2)), CrossEntropyLoss(), Adam(1e-3))


@pytest.mark.parametrize(
    ("kind", "call", "message"),
    [
        (
            DataError,
            lambda: trainer_of_numbers().fit(FRAME, y="sold", epochs=1),
            r"columns of numbers, found \['city', 'since'\]; TabularNet.of\(frame, target='sold'\)",
        ),
        (
            DataError,
            lambda: trainer_of_numbers().fit(FRAME[["age", "sold"]], y="sodl", epochs=1),
            r"Trainer.fit, y: expected a column of the DataFrame, such as 'sold', 'age', found 'so",
        ),
        (
            SettingsError,
            lambda: trainer_of_numbers().fit(FRAME, epochs=1),
            r"Trainer.fit: expected the name of the label's column with a DataFrame, y='label'",
        ),
        (
            SettingsError,
            lambda: trainer_of_numbers().fit(AGE, epochs=1),
            r"Trainer.fit: expected a SampleSet, such as .*, or X and y, found array",
        ),
        (
            SettingsError,
            lambda: TabularNet([1, 2]),
            r"TabularNet, encoder: expected a TableEncoder, found list; TabularNet.of",
        ),
        (
            SettingsError,
            lambda: Trainer(
                TabularNet.of(FRAME, target="sold"), CrossEntropyLoss(), Adam(1e-3)
            ).fit(FRAME, y="city", epochs=1),
            r"Trainer.fit, y: expected 'sold', the model's target, found 'city'",
        ),
    ],
)
def test_inputs_that_do_not_fit_are_refused(kind, call, message):
    with pytest.raises(kind, match=message):
        call()
