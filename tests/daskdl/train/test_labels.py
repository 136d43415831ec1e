"""Mistakes in labels and sizes are told with the sample, before the first iteration if possible."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.data import SampleSet
from daskdl.errors import DataError, TrainingError
from daskdl.nn import CrossEntropyLoss, Linear
from daskdl.optim import SGD
from daskdl.train import Trainer


def fit(y, loss=None, samples=None, **options):
    x = np.zeros((len(y), 4), np.float32)
    made = SampleSet.from_arrays(x=x, y=np.asarray(y), partitions=3)
    trainer = Trainer(Linear(4, 3, seed=0), loss or CrossEntropyLoss(), SGD(0.1))
    trainer.fit(made if samples is None else samples(made), epochs=1, progress=False, **options)
    return trainer


def labels(wrong=None):
    y = np.arange(12) % 3
    if wrong is not None:
        y[10] = wrong
    return y


@pytest.mark.parametrize("wrong", [3, -1])
def test_a_wrong_label_in_memory_is_found_before_any_iteration(wrong):
    with pytest.raises(
        DataError, match=rf"0 to 2, as .* 3 outputs, found y = {wrong} in sample 10"
    ):
        fit(labels(wrong))


def test_an_ignored_label_is_none_of_them():
    assert len(fit(labels(-1), CrossEntropyLoss(ignore_index=-1)).history) == 1
    with pytest.raises(DataError, match="found y = 7 in sample 10"):
        fit(labels(7), CrossEntropyLoss(ignore_index=-1))


def test_a_wrong_label_that_a_function_makes_names_its_sample():
    """Sample 10 of twelve in three partitions is the third of the last."""
    with pytest.raises(TrainingError, match=r"shard 2: .* to 2, found 9 in sample 2 of the partit"):
        fit(labels(9), samples=lambda made: made.map(dict), batch_size=12)


def test_evaluations_name_it_too():
    trainer = fit(labels())
    x = np.zeros((12, 4), np.float32)
    samples = SampleSet.from_arrays(x=x, y=labels(9), partitions=3)
    with pytest.raises(
        TrainingError, match=r"validation, shard 2: .* found 9 in sample 2 of the p"
    ):
        trainer.evaluate(samples)


def test_words_are_told_how_to_become_numbers():
    with pytest.raises(DataError, match=r"found words such as 'cat'; number the classes from 0"):
        fit(np.array(["cat", "dog", "cat"]))


def test_a_batch_of_more_than_all_samples_is_told_once(caplog):
    assert len(fit(labels(), batch_size=12).history) == 1
    assert not caplog.records
    assert len(fit(labels(), batch_size=13).history) == 1
    assert [r.message[:62] for r in caplog.records] == [
        "Trainer.fit: batch_size 13 is more than the 12 samples, so tha"
    ]
