"""Text classifiers and the encoder-forecaster: shapes, gradients, what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import Trainer
from daskdl.data import SampleSet
from daskdl.errors import SettingsError, ShapeError
from daskdl.models import ConvLSTMForecaster
from daskdl.models.text import TextClassifier
from daskdl.nn import MSELoss, NLLLoss
from daskdl.ops.shape.shape import depth_to_space
from daskdl.optim import Adagrad

ENCODERS = pytest.mark.parametrize("encoder", ["lstm", "gru", "cnn"])


def classifier(encoder, **options):
    return TextClassifier(20, 3, 8, encoder, channels=10, hidden=6, seed=1, **options).eval()


@pytest.mark.slow
@ENCODERS
def test_log_probabilities_that_padding_does_not_change(encoder):
    model = classifier(encoder)
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
    model, ids = classifier(encoder), np.array([[4, 9, 2, 7]])
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
    model = classifier("cnn").load_vectors(table)
    model.freeze("embedding")
    x = np.random.default_rng(1).integers(0, 20, (8, 5))
    samples = SampleSet.from_arrays(x=x, y=np.arange(8) % 3)
    Trainer(model, NLLLoss(), Adagrad(0.1)).fit(samples, epochs=1, progress=False)
    np.testing.assert_array_equal(model.embedding.weight.data, table)
    with pytest.raises(ShapeError, match=r"\(words, features\) = \(20, 8\), found \(20, 9\)"):
        model.load_vectors(np.zeros((20, 9)))


def test_refusals():
    with pytest.raises(SettingsError, match="expected lstm, gru or cnn, found 'bert'"):
        classifier("bert")
    with pytest.raises(ShapeError, match=r"expected ids of shape \(N, T\), found \(4,\)"):
        classifier("cnn")(np.zeros(4, int))


def small(**settings) -> ConvLSTMForecaster:
    return ConvLSTMForecaster(2, 3, **{"channels": (4, 3), "block": 2, "seed": 1} | settings)


def test_makes_as_many_images_as_asked_for_of_the_same_size():
    y = small()(np.zeros((2, 2, 6, 8, 1), np.float32))
    assert y.shape == (2, 3, 6, 8, 1)
    assert y.dtype == np.float32


def test_images_begin_as_an_interpolation_between_blocks():
    model = small(block=4)
    weight = model.state_dict()["head.weight"].astype(np.float64)
    rows, columns, channels = 5, 6, weight.shape[-1]
    mixture = weight.sum((1, 2))
    np.testing.assert_allclose(mixture, mixture[:1].repeat(16, 0), atol=1e-6)  # at all pixels
    places = np.add.outer(3.0 * np.arange(rows), -2.0 * np.arange(columns))  # a plane
    below = (places[..., None] * np.ones(channels)).astype(np.float32)[None]
    model.head.bias.data[:] = 0
    images = depth_to_space(model.head(below), block=4).data[0, ..., 0]
    middles = [(np.arange(4 * n) + 0.5) / 4 - 0.5 for n in (rows, columns)]  # in blocks
    plane = np.add.outer(3.0 * middles[0], -2.0 * middles[1])[4:-4, 4:-4]
    np.testing.assert_allclose(images, plane * mixture[0].sum(), rtol=1e-3, atol=1e-3)


def test_a_wet_plain_is_no_drier_at_its_edges():
    model = small(block=4)
    for layer in (*model.encoder, *model.forecaster):  # with outputs alike everywhere
        layer.load_state_dict(
            {n: np.full_like(v, "bias" in n) for n, v in layer.state_dict().items()}
        )
    y = model(np.ones((1, 2, 16, 16, 1), np.float32)).data - model.head.bias.data[0]
    np.testing.assert_allclose(y, y[:, :, :1, :1].repeat(16, 2).repeat(16, 3), rtol=1e-4)
    assert (np.abs(y) > 1e-3).all()


def test_every_input_image_reaches_every_output_image():
    model, x = small(), np.zeros((1, 2, 6, 6, 1), np.float32)
    unchanged = model(x).data
    for frame in range(2):
        changed = x.copy()
        changed[0, frame] = 1
        difference = np.abs(model(changed).data - unchanged)[0].max((1, 2, 3))
        assert (difference > 0).all()


def test_gradient_along_a_random_direction():
    rng = np.random.default_rng(0)
    model, loss = small(), MSELoss()
    x = rng.normal(size=(1, 2, 4, 4, 1)).astype(np.float32)
    y = rng.normal(size=(1, 3, 4, 4, 1)).astype(np.float32)
    direction = rng.normal(size=model.flat.size)
    start = model.flat.copy()

    model.zero_grad()
    loss(model(x), y).backward()
    slope = float(model.flat_grad @ direction)

    def value(step: float) -> float:
        model.load_flat((start + step * direction).astype(np.float32))
        return float(loss(model(x), y))

    step = 2e-3
    assert slope == pytest.approx((value(step) - value(-step)) / (2 * step), rel=2e-2)


@pytest.mark.parametrize(
    ("shape", "sentence"),
    [
        ((1, 3, 4, 4, 1), "expected 2 input images, found 3"),
        ((1, 2, 5, 4, 1), "multiples of 2, found 5 x 4"),
        ((1, 2, 4, 4, 2), r"channels last, found \(1, 2, 4, 4, 2\)"),
    ],
)
def test_refuses_other_shapes(shape, sentence):
    with pytest.raises(ShapeError, match=sentence):
        small()(np.zeros(shape, np.float32))
