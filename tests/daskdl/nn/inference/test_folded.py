"""Table rows that an LSTM reads: their products are looked up, with the bits of multiplying."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from daskdl.data.text.padding import lengths_of
from daskdl.errors import ShapeError
from daskdl.kernels.products.affine import Affine
from daskdl.nn import LSTM, Conv2d, Dropout, Embedding, Linear, Module
from daskdl.nn.inference import prepared as folded
from daskdl.predict import Predictor

WORDS, FEATURES = 50, 24


class Reader(Module):
    """An LSTM that reads ids (N, T), maybe with steps first in memory, or from the end."""

    def __init__(self, padding=0, first=False, reverse=False):
        self.table = Embedding(WORDS, FEATURES, padding_index=padding, seed=0)
        self.table.weight.data[0] = 3  # not read if it is the padding
        self.dropout, self.layer = Dropout(0.5), LSTM(FEATURES, 16, returns="last", seed=1)
        self._first, self._reverse = first, reverse

    def forward(self, ids):
        lengths = lengths_of(ids)
        if self._first:
            x = ops.transpose(self.dropout(self.table(ids.T)), axes=(1, 0, 2))
        else:
            x = self.dropout(self.table(ids))
        return self.layer(x, lengths=lengths, reverse=self._reverse)


def _texts(n, steps=6):
    ids = np.random.default_rng(0).integers(1, WORDS, (n, steps))
    ids[1::3, steps // 2 :] = 0
    ids[0, 2] = 0  # padding, but not behind the words
    return ids


@pytest.fixture
def products(monkeypatch):
    """Return a list of how many rows each product of the LSTM's inputs multiplies."""
    counts = []
    multiply = Affine.__call__

    def counting(self, x, *rest):
        if self.filters == 64:  # the four gates of 16 channels
            counts.append(x.size // FEATURES)
        return multiply(self, x, *rest)

    monkeypatch.setattr(Affine, "__call__", counting)
    return counts


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("settings", [{}, {"first": True}, {"padding": None}, {"reverse": True}])
def test_products_that_are_looked_up_have_the_bits_of_multiplying(settings, precision, products):
    model, ids = Reader(**settings), _texts(7)
    wanted = Predictor(model, batch_size=7, precision=precision)(ids)
    assert products == [7 * 6]
    for size in (1, 3, 7):
        predictor = Predictor(model, batch_size=size, precision=precision)
        for _ in range(4):
            np.testing.assert_array_equal(predictor(ids), wanted)
        del products[:]
        np.testing.assert_array_equal(predictor(ids), wanted)
        assert not products


def test_the_table_is_multiplied_once_as_many_rows_were(products):
    predictor, ids = Predictor(Reader(), batch_size=2), _texts(2)
    for _ in range(8):
        predictor(ids)
    assert products == [12, 12, 12, 12, WORDS, 1]


def test_a_table_whose_products_are_too_large_stays(products, monkeypatch):
    monkeypatch.setattr(folded, "MOST_BYTES", WORDS * 64 * 4 - 1)
    predictor, ids = Predictor(Reader(), batch_size=2), _texts(2)
    for _ in range(8):
        predictor(ids)
    assert products == [12] * 8


@pytest.mark.parametrize("wrong", [-1, WORDS])
def test_an_id_that_the_table_does_not_have_is_named(wrong):
    predictor, ids = Predictor(Reader(), batch_size=2), _texts(2)
    for _ in range(8):
        predictor(ids)
    ids[0, 0] = wrong
    with pytest.raises(ShapeError, match=f"expected ids from 0 to {WORDS - 1}.*found {wrong}"):
        predictor(ids)


def test_rows_that_other_operations_read_are_unchanged():
    class Both(Reader):
        def forward(self, ids):
            x = ops.transpose(self.table(ids.T), axes=(1, 0, 2))
            whole, positive = self.layer(x), self.layer(ops.relu(x))
            return ops.concatenate(whole, positive, ops.take(x, index=(slice(None), -1)))

    model, ids = Both(), _texts(3)
    predictor, wanted = Predictor(model, batch_size=3), model.eval()(ids).data
    for _ in range(4):
        np.testing.assert_allclose(predictor(ids), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("layer", [Linear(FEATURES, 16, seed=1), Conv2d(FEATURES, 16, 1, seed=1)])
def test_other_layers_read_rows_as_usual(layer):
    class Mapped(Module):
        def __init__(self):
            self.table, self.map = Embedding(WORDS, FEATURES, seed=0), layer

        def forward(self, ids):
            return self.map(ops.relu(self.table(ids[:, None])))

    model, ids = Mapped(), _texts(3)
    wanted = model.eval()(ids).data
    np.testing.assert_allclose(Predictor(model, batch_size=3)(ids), wanted, rtol=1e-5, atol=1e-6)
