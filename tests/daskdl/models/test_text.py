from __future__ import annotations

import numpy as np
import pytest

from daskdl import Trainer, nn
from daskdl.data import SampleSet
from daskdl.errors import SettingsError, ShapeError
from daskdl.models.text import TextClassifier
from daskdl.nn import NLLLoss
from daskdl.optim import Adagrad

ENCODERS = pytest.mark.parametrize("encoder", ["lstm", "gru", "cnn"])


def made(encoder, **options):
    return TextClassifier(20, 3, 8, encoder, channels=10, hidden=6, seed=1, **options).eval()


@pytest.mark.slow
@ENCODERS
def test_log_probabilities_that_padding_does_not_change(encoder):
    model = made(encoder)
    ids = np.zeros((3, 7), np.int32)
    ids[0, :5], ids[1, :2] = [4, 9, 2, 2, 19], [7, 3]
    y = model(ids).data
    assert y.shape == (3, 3)
    np.testing.assert_allclose(np.exp(y).sum(1), 1, rtol=1e-5)
    wide = np.pad(ids, ((0, 0), (0, 9)))
    np.testing.assert_array_equal(model(wide).data, y)
    for i, n in enumerate([5, 2]):
        np.testing.assert_allclose(model(ids[i : i + 1, :n]).data, y[i : i + 1], rtol=1e-5)
    assert np.isfinite(y).all()  # the last has no words


@pytest.mark.slow
@ENCODERS
def test_the_order_of_words_matters(encoder):
    model, ids = made(encoder), np.array([[4, 9, 2, 7]])
    assert np.abs(model(ids).data - model(ids[:, ::-1]).data).max() > 1e-4


@pytest.mark.slow
@ENCODERS
def test_learns_whether_one_word_stands_before_another(encoder):
    rng = np.random.default_rng(0)
    x = rng.integers(4, 20, (256, 6)).astype(np.int32)
    first = rng.integers(0, 5, 256)
    y = rng.integers(0, 2, 256)
    rows = np.arange(256)
    x[rows, first], x[rows, first + 1] = np.where(y, 2, 3), np.where(y, 3, 2)
    model = TextClassifier(20, 2, 16, encoder, channels=16, hidden=16, dropout=0.0)
    Trainer(model, NLLLoss(), Adagrad(0.05)).fit(
        SampleSet.from_arrays(x=x, y=y), epochs=25, batch_size=32, progress=False
    )
    assert (model.eval()(x).data.argmax(1) == y).mean() > 0.97


def test_takes_vectors_and_keeps_them_when_frozen():
    table = np.random.default_rng(0).normal(size=(20, 8)).astype(np.float32)
    table[0] = 0
    model = made("cnn").load_vectors(table)
    model.freeze("embedding")
    x = np.random.default_rng(1).integers(0, 20, (8, 5))
    samples = SampleSet.from_arrays(x=x, y=np.arange(8) % 3)
    Trainer(model, NLLLoss(), Adagrad(0.1)).fit(samples, epochs=1, progress=False)
    np.testing.assert_array_equal(model.embedding.weight.data, table)
    with pytest.raises(ShapeError, match=r"\(words, features\) = \(20, 8\), found \(20, 9\)"):
        model.load_vectors(np.zeros((20, 9)))


@pytest.mark.slow
@ENCODERS
def test_survives_a_file(encoder, tmp_path):
    model = made(encoder)
    nn.save(model, tmp_path / "text.safetensors")
    ids = np.array([[3, 4, 5, 0]])
    loaded = nn.load(tmp_path / "text.safetensors").eval()
    np.testing.assert_array_equal(loaded(ids).data, model(ids).data)


def test_refusals():
    with pytest.raises(SettingsError, match="expected lstm, gru or cnn, found 'bert'"):
        made("bert")
    with pytest.raises(ShapeError, match=r"expected ids of shape \(N, T\), found \(4,\)"):
        made("cnn")(np.zeros(4, int))
