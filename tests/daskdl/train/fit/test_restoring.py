"""Restoring: a checkpoint that does not fit the run is never used; the one before is tried."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from daskdl.errors import CheckpointError
from daskdl.nn import Linear, MSELoss, Sequential
from daskdl.optim import SGD, Adam
from daskdl.optim.schedules import Cosine, Plateau, Warmup
from daskdl.train import BestModel, Trainer
from daskdl.train.fit.checkpoint import CheckpointFolder
from tests.daskdl.optim.test_layout import METHODS
from tests.daskdl.train.runs import On, digest, fit, network, problem

Change = Callable[[dict[str, Any], dict[str, Any]], object]


def changed(path: Path, change: Change, steps: int = 1) -> None:
    """Change arrays and other data of the last checkpoints, which stay readable."""
    folder = CheckpointFolder(path)
    for step in sorted(path.glob("step-*"))[-steps:]:
        others = [p for p in path.glob("step-*") if p > step]
        for other in others:
            other.rename(other.with_name(f"aside-{other.name}"))
        saved = folder.read()
        arrays, more = dict(saved.arrays), dict(saved.more)
        change(arrays, more)
        folder.write(replace(saved, arrays=arrays, more=more))
        for other in others:
            other.with_name(f"aside-{other.name}").rename(other)


def shorten(name: str) -> Change:
    return lambda arrays, more: arrays.update({name: arrays[name][:-3]})


def lose(name: str) -> Change:
    return lambda arrays, more: (arrays if name in arrays else more).pop(name)


DAMAGE: list[tuple[Change, str]] = [
    (shorten("weights"), r"expected weights float32 \(66,\), found float32 \(63,\)"),
    (lose("weights"), r"expected weights float32 \(66,\), found none"),
    (shorten("optimizer.mean"), r"expected optimizer.mean float32 \(66,\), found float32 \(63,\)"),
    (lose("optimizer.mean"), r"expected optimizer.mean float32 \(66,\), found none"),
    (
        lambda arrays, more: arrays.update({"optimizer.mean": np.zeros(66, np.int32)}),
        r"expected optimizer.mean float32 \(66,\), found int32 \(66,\)",
    ),
    (
        lambda arrays, more: arrays.update({"optimizer.velocity": np.zeros(66, np.float32)}),
        r"expected optimizer.velocity none, found float32 \(66,\)",
    ),
    (lose("history.loss"), r"expected history.loss of shape \(14,\), found none"),
    (shorten("history.samples"), r"expected history.samples of shape \(14,\), found \(11,\)"),
    (lose("threads"), "expected 'threads' as int, found None"),
    (lose("stopped"), "expected 'stopped' as bool, found None"),
    (lambda arrays, more: more.update(threads=0), "expected threads from 1, found 0"),
    (lambda arrays, more: more.update(epochs=[{}]), "each of 'epochs' with its iteration"),
]


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 6, 8, 11])  # arrays, history, settings, epochs
def test_a_checkpoint_that_does_not_fit_is_named_and_the_one_before_used(tmp_path, caplog, which):
    samples, whole = problem(), digest(fit(problem(), client=False))
    fit(samples, epochs=2, checkpoint=tmp_path, client=False)
    assert len(list(tmp_path.glob("step-*"))) == 2
    changed(tmp_path, DAMAGE[which][0])
    with caplog.at_level(logging.WARNING):
        assert digest(fit(samples, checkpoint=tmp_path, client=False)) == whole
    assert "step-0000000014 (expected" in caplog.text


@pytest.mark.slow
@pytest.mark.parametrize(("change", "message"), DAMAGE)
def test_without_a_checkpoint_that_fits_the_error_is_one_sentence(tmp_path, change, message):
    fit(problem(), iterations=14, checkpoint=tmp_path, client=False)
    for step in sorted(tmp_path.glob("step-*"))[:-1]:
        step.rename(step.with_name("other"))
    changed(tmp_path, change)
    with pytest.raises(CheckpointError, match=message) as raised:
        fit(problem(), iterations=20, checkpoint=tmp_path, client=False)
    assert "resume=False" in str(raised.value)


def test_a_method_of_other_settings_and_state_is_refused(tmp_path):
    samples = problem()
    trainer = Trainer(network(), MSELoss(), SGD(0.1, momentum=0.9), seed=5)
    trainer.fit(samples, iterations=3, checkpoint=tmp_path, progress=False, client=False)
    other = Trainer(network(), MSELoss(), SGD(0.1), seed=5)
    with pytest.raises(CheckpointError, match=r"expected optimizer\.velocity none, found float32"):
        other.fit(samples, iterations=6, checkpoint=tmp_path, progress=False, client=False)


def test_a_callback_that_does_not_know_its_state_is_named(tmp_path):
    options = {"validation": problem(), "checkpoint": tmp_path, "client": False}
    fit(problem(), epochs=1, callbacks=[BestModel()], **options)

    def change(arrays, more):
        # In any order of the file: one of them, the weights, may be missing.
        for name in [name for name in arrays if name.startswith("callback.")]:
            arrays[f"{name}.of.another.version"] = arrays.pop(name)

    changed(tmp_path, change, steps=2)  # on a slow machine there is one in mid-epoch too
    with pytest.raises(CheckpointError, match=r"expected a state of BestModel, found \['"):
        fit(problem(), epochs=2, callbacks=[BestModel()], **options)


def test_a_second_fit_into_a_folder_is_refused_during_the_first(tmp_path):
    def refused(trainer):
        with pytest.raises(CheckpointError) as raised:
            fit(problem(), epochs=1, checkpoint=tmp_path, resume=False, client=False)
        return str(raised.value)

    second = On(epoch=refused)
    fit(problem(), epochs=2, callbacks=[second], checkpoint=tmp_path, client=False)
    assert second.seen[0].startswith(
        f"{tmp_path}: expected a folder of this fit alone, found another"
    )
    assert len(list(tmp_path.glob("step-*"))) == 2
    fit(problem(), epochs=3, checkpoint=tmp_path, client=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [*METHODS, SGD(Plateau(0.1, patience=1)), Adam(Warmup(Cosine(0.05, 25), 5), amsgrad=True)],
    ids=lambda method: type(method).__name__,
)
def test_the_state_of_every_method_goes_on(tmp_path, method):
    """A step leaves names, shapes and dtypes of the state as they were at the beginning."""

    def trained(iterations, **options):
        model = Sequential(Linear(5, 8, seed=1), Linear(8, 2, seed=2), Linear(2, 2, seed=3))
        trainer = Trainer(model, MSELoss(), method, seed=5)
        samples = problem().map(lambda batch: {**batch, "x": batch["x"] / 50})
        trainer.fit(
            samples, iterations=iterations, batch_size=8, validation=samples, progress=False,
            client=False, **options,
        )  # fmt: skip
        return trainer

    trained(9, checkpoint=tmp_path)
    assert digest(trained(12, checkpoint=tmp_path)) == digest(trained(12))
