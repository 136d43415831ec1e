from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from daskdl.data import SampleSet
from daskdl.errors import SettingsError
from daskdl.metrics import ROCAUC, MeanAbsoluteError
from daskdl.nn import MSELoss
from daskdl.optim import SGD, Adam
from daskdl.train import BestModel, Callback, EarlyStopping, Trainer
from tests.daskdl.train.runs import On, fit, network, problem


def new_trainer() -> Trainer:
    return Trainer(network(), MSELoss(), SGD(0.1))


def follow(
    callback: Callback,
    losses: Sequence[float],
    first: int = 0,
    name: str = "loss",
    trainer: Trainer | None = None,
) -> int | None:
    """Return the epoch after which ``callback`` stops a fit with these losses of epochs."""
    trainer = trainer or new_trainer()
    for epoch, loss in enumerate(losses, first):
        trainer.model.flat[:] = epoch
        if callback.on_epoch_end(trainer, epoch, {"epoch": epoch, "loss": 1.0, name: loss}):
            return epoch
    return None


@pytest.mark.parametrize(
    ("patience", "by", "losses", "stops"),
    [
        (1, 0, [3, 2, 1], None),
        (1, 0, [3, 3], 1),  # an equal loss is no better
        (2, 0, [3, 4, 2.9, 3, 2.8], None),
        (2, 0, [3, 4, 3], 2),
        (2, 0.5, [3, 2.75, 2.25, 9], None),  # 2.25 is lower than 3 by more than 0.5
        (2, 0.5, [3, 2.5, 2.5], 2),  # just 0.5 is not more
        (2, 0.5, [3, 2.75, 2.4, 2.3, 2.2], 4),
        (3, 0, [np.nan, np.nan, np.nan], 2),
        (2, 0, [3, np.nan, 2, np.nan], None),
    ],
)
def test_early_stopping_waits_for_patience(patience, by, losses, stops):
    assert follow(EarlyStopping(patience, by), losses) == stops


@pytest.mark.parametrize("options", [{"patience": 0}, {"by": -0.1}, {"by": np.nan}])
def test_early_stopping_refuses_settings_that_would_stop_at_once(options):
    with pytest.raises(SettingsError, match=r"patience of at least 1 .* found patience="):
        EarlyStopping(**options)


@pytest.mark.parametrize("kind", [EarlyStopping, BestModel])
def test_the_validation_is_watched_if_there_is_one(kind):
    watching = kind()
    follow(watching, [0.5], name="val_loss")
    assert watching.best == 0.5
    named = kind(monitor="val_mae")
    follow(named, [0.25], name="val_mae")
    assert named.best == 0.25
    with pytest.raises(
        SettingsError, match=rf"{kind.__name__}: .* \['epoch', 'loss'\], found 'mae'"
    ):
        follow(kind(monitor="mae"), [1.0])


@pytest.mark.parametrize("cut", [1, 2, 3, 4])
def test_early_stopping_goes_on_where_it_was(cut):
    losses = [3, 2, 2.5, 2.2, 2.1, 2.0]
    assert follow(EarlyStopping(3), losses) == 4
    before, after = EarlyStopping(3), EarlyStopping(3)
    follow(before, losses[:cut])
    after.restore(before.state())
    assert follow(after, losses[cut:], first=cut) == 4


@pytest.mark.parametrize("higher", [None, True, False])
def test_a_metric_says_whether_higher_is_better(higher):
    losses, best, stop = [0.5, 0.75, 0.7, 0.6, 0.8], [], []
    for name in ("val_auc", "val_mae", "val_other"):
        watching = BestModel(name, higher), EarlyStopping(2, 0.01, name, higher)
        trainer = Trainer(
            network(), MSELoss(), SGD(0.1), metrics={"auc": ROCAUC(), "mae": MeanAbsoluteError()}
        )
        epochs = [follow(callback, losses, name=name, trainer=trainer) for callback in watching]
        best.append(watching[0].best)
        stop.append(epochs[1])
    assert best == {None: [0.8, 0.5, 0.5], True: [0.8] * 3, False: [0.5] * 3}[higher]
    assert stop == {None: [3, 2, 2], True: [3] * 3, False: [2] * 3}[higher]


def test_the_best_weights_come_back():
    best = BestModel()
    follow(best, [3, 1, 2, 1])
    trainer = new_trainer()
    best.on_fit_end(trainer)
    assert best.best_epoch == 1
    np.testing.assert_array_equal(trainer.model.flat, 1)
    after = BestModel()
    after.restore(best.state())
    follow(after, [1.5, 1.25], first=4)
    trainer.model.flat[:] = 9
    after.on_fit_end(trainer)
    np.testing.assert_array_equal(trainer.model.flat, 1)


def test_a_model_without_a_best_is_left_alone():
    before = BestModel()
    follow(before, [np.nan])
    best = BestModel()
    best.weights = np.zeros(3, np.float32)
    best.restore(before.state())
    trainer = new_trainer()
    weights = trainer.model.flat.copy()
    best.on_fit_end(trainer)
    np.testing.assert_array_equal(trainer.model.flat, weights)


def test_a_fit_leaves_the_model_with_the_weights_of_its_best_epoch():
    weights = On(epoch=lambda trainer: trainer.model.flat.copy())
    best, stop = BestModel(), EarlyStopping(2)
    rng = np.random.default_rng(3)
    noise = [
        SampleSet.from_arrays(
            x=rng.normal(size=(8, 5)).astype(np.float32),
            y=rng.normal(size=(8, 2)).astype(np.float32),
        )
        for _ in range(2)
    ]
    trainer = Trainer(network(), MSELoss(), Adam(0.03))
    trainer.fit(
        noise[0],
        validation=noise[1],
        epochs=40,
        batch_size=4,
        callbacks=[weights, best, stop],
        progress=False,
    )
    losses = [row["val_loss"] for row in trainer.history.epochs]
    lowest = int(np.argmin(losses))
    assert len(losses) == len(weights.seen) == lowest + 3 < 40
    assert lowest > 0
    assert best.best_epoch == stop.best_epoch == lowest
    np.testing.assert_array_equal(trainer.model.flat, weights.seen[lowest])


def test_a_new_fit_knows_nothing_of_the_one_before():
    best, stop = BestModel(), EarlyStopping(3)
    best.best = stop.best = -1.0  # lower than any loss
    best.best_epoch = stop.best_epoch = 7
    best.weights = np.full(network().flat.size, 9, np.float32)
    best.on_fit_begin(new_trainer())
    assert best.weights is None  # where nothing improves, the model stays as it is
    trainer = fit(problem(), epochs=2, callbacks=[best, stop])
    assert best.best == stop.best == min(row["loss"] for row in trainer.history.epochs)
    assert not (trainer.model.flat == 9).any()
