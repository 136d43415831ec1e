"""Models of several inputs and results, in engines, predictions, evaluations and files."""

from __future__ import annotations

import dask
import dask.array as da
import dask.bag as db
import numpy as np
import pytest

import daskdl
from daskdl import ops
from daskdl.data import SampleSet
from daskdl.errors import DataError, ShapeError
from daskdl.metrics import Accuracy, MeanAbsoluteError
from daskdl.nn import (
    CrossEntropyLoss,
    Embedding,
    Join,
    Linear,
    Module,
    MSELoss,
    MultiLoss,
    Parallel,
    Sequential,
)
from daskdl.optim import Adam
from daskdl.train import Trainer

N = 40
RNG = np.random.default_rng(0)
USER = RNG.integers(0, 7, N)
FACTS = RNG.normal(size=(N, 3))
LABEL = (FACTS[:, 0] > 0).astype(np.int64)


class Named(Module):
    """Two inputs by name, two results by name."""

    def __init__(self) -> None:
        self.table = Embedding(7, 4, seed=1)
        self.kind = Linear(7, 2, seed=2)
        self.price = Linear(7, 1, seed=3)

    def forward(self, facts, user):
        assert np.asarray(getattr(user, "data", user)).dtype.kind == "i"
        both = ops.concatenate(self.table(user), facts)
        return {"kind": self.kind(both), "price": self.price(both)}


class Numbered(Named):
    """Returns the results of Named in a tuple."""

    def forward(self, facts, user):
        return tuple(super().forward(facts, user).values())


class Ordered(Module):
    """Takes its two inputs by order, and has one result."""

    def __init__(self) -> None:
        self.table = Embedding(7, 4, seed=1)
        self.kind = Linear(7, 2, seed=2)

    def forward(self, user, facts):
        return self.kind(ops.concatenate(self.table(user), facts))


def two(partitions: int = 2) -> SampleSet:
    return SampleSet.from_arrays(
        x={"user": USER, "facts": FACTS},
        y={"kind": LABEL, "price": FACTS[:, :1]},
        partitions=partitions,
    )


def fitted(samples: SampleSet, **options: object) -> Trainer:
    trainer = Trainer(
        Named(),
        MultiLoss({"kind": CrossEntropyLoss(), "price": MSELoss()}, {"price": 0.5}),
        Adam(1e-2),
        metrics={"kind": [Accuracy()], "price": [MeanAbsoluteError()]},
    )
    trainer.fit(samples, epochs=3, batch_size=8, progress=False, **options)
    return trainer


def test_the_metrics_of_each_result_have_its_name(client):
    trainer = fitted(two())
    assert trainer.history["loss"][-1] < trainer.history["loss"][0]
    scores = trainer.evaluate(two())
    assert set(scores) == {"loss", "kind_accuracy", "price_mean_absolute_error"}
    assert trainer.evaluate(two(), client=client) == scores


def test_joined_inputs_have_the_bits_of_one_input():
    one = Sequential(Linear(5, 2, seed=4))
    x = RNG.normal(size=(N, 5)).astype(np.float32)
    joined = Sequential(Join(), Linear(5, 2, seed=4))
    for model, inputs in ((one, x), (joined, (x[:, :2], x[:, 2:]))):
        samples = SampleSet.from_arrays(x=inputs, y=LABEL, partitions=2)
        Trainer(model, CrossEntropyLoss(), Adam(1e-2)).fit(
            samples, epochs=2, batch_size=8, progress=False
        )
    np.testing.assert_array_equal(one.flat, joined.flat)


def test_a_list_of_losses_has_one_for_each_result():
    model = Sequential(Parallel(Linear(3, 2, seed=1), Linear(2, 1, seed=2)))
    samples = SampleSet.from_arrays(x=(FACTS, FACTS[:, :2]), y=(LABEL, FACTS[:, :1]))
    trainer = Trainer(model, [CrossEntropyLoss(), MSELoss()], Adam(1e-2))
    history = trainer.fit(samples, epochs=2, progress=False)
    assert history["loss"][-1] < history["loss"][0]


def test_predictions_of_each_kind_are_the_same(tmp_path):
    model = Ordered()
    daskdl.save(model, tmp_path / "model.safetensors")
    model = daskdl.load(tmp_path / "model.safetensors")
    wanted = model.predict((USER, FACTS), batch_size=7)
    assert wanted.shape == (N, 2)
    lazy = model.predict((da.from_array(USER, chunks=11), FACTS))
    np.testing.assert_allclose(lazy.compute(scheduler="sync"), wanted, rtol=1e-6)
    samples = SampleSet.from_arrays(x=(USER, FACTS), partitions=3)
    np.testing.assert_allclose(model.predict(samples).compute(scheduler="sync"), wanted, rtol=1e-6)
    bag = db.from_sequence(
        [{"x": pair} for pair in zip(USER[:, None], FACTS, strict=True)], npartitions=2
    )
    single = Sequential(Join(), Linear(4, 1, seed=1))
    of_bag = np.stack(single.predict(bag).compute(scheduler="sync"))
    np.testing.assert_allclose(of_bag, single.predict((USER[:, None], FACTS)), rtol=1e-5)
    assert model.predict((USER[:0], FACTS[:0])).shape == (0, 2)
    assert model.embed((USER, FACTS), "table").shape == (N, 4)


def test_results_keep_their_names():
    model = Named()
    results = model.predict({"user": USER, "facts": FACTS}, batch_size=9)
    assert results["kind"].shape == (N, 2)
    assert results["price"].shape == (N, 1)
    shapes = {"facts": (3,), "user": ()}
    assert "(N, 2) (N, 1)" in str(model.summary(shapes, ["float32", "int64"]))


@pytest.mark.slow
@pytest.mark.parametrize("model", [Named(), Numbered()])
def test_results_of_samples_and_of_workers_keep_their_form(model, client):
    x = {"user": USER, "facts": FACTS}
    wanted = model.predict(x, batch_size=9)
    lazy = model.predict(two(3), client=False)
    assert type(lazy) is type(wanted)
    here, there = dask.compute(lazy, scheduler="sync")[0], model.predict(x, client=client)
    for name in wanted if isinstance(wanted, dict) else range(2):
        assert lazy[name].numblocks == (3, 1)
        np.testing.assert_allclose(here[name], wanted[name], rtol=1e-5, atol=1e-6)
        assert type(there[name]) is np.ndarray
        np.testing.assert_allclose(there[name], wanted[name], rtol=1e-5, atol=1e-6)


def test_metrics_of_a_tuple_of_results_and_of_arrays():
    model = Sequential(Parallel(Linear(3, 2, seed=1), Linear(2, 1, seed=2)))
    x, y = (FACTS, FACTS[:, :2]), (LABEL, FACTS[:, :1])
    metrics = ([Accuracy()], [MeanAbsoluteError()])
    trainer = Trainer(model, [CrossEntropyLoss(), MSELoss()], Adam(1e-2), metrics=metrics)
    trainer.fit(x, y, epochs=2, progress=False)
    scores = model.evaluate(x, metrics, y=y)
    assert set(scores) == {"0_accuracy", "1_mean_absolute_error"}
    assert scores == model.evaluate(SampleSet.from_arrays(x=x, y=y), metrics)
    assert scores["0_accuracy"] == np.mean(model.predict(x)[0].argmax(1) == LABEL)


def test_inputs_losses_and_metrics_that_do_not_fit_are_refused():
    with pytest.raises(DataError, match=r"inputs with one common length .* \[40, 3\]"):
        Ordered().predict((USER, FACTS[:3]))
    trainer = Trainer(Named(), {"kind": CrossEntropyLoss(), "cost": MSELoss()}, Adam(1e-2))
    with pytest.raises(ShapeError, match=r"predictions called \['kind', 'cost'\], found \['kind'"):
        trainer.fit(two(), epochs=1, progress=False)
    metric = {"cost": [MeanAbsoluteError()]}
    losses = {"kind": CrossEntropyLoss(), "price": MSELoss()}
    with pytest.raises(DataError, match=r"MeanAbsoluteError: expected a result 'cost', found \["):
        Trainer(Named(), losses, Adam(1e-2), metrics=metric).fit(two(), epochs=1, progress=False)
