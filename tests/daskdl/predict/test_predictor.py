"""A predictor: batches, inference without a trace on the model, layers, classes."""

from __future__ import annotations

import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from daskdl.data import Ragged
from daskdl.errors import DataError, SettingsError, ShapeError
from daskdl.kernels.runtime import threads
from daskdl.nn import Embedding, Linear, Module, Sequential, Squeeze
from daskdl.predict.predictor import BATCH_BYTES, LARGEST_BATCH, Predictor
from daskdl.tensor import recording
from tests.daskdl.predict.networks import N, by_hand, inputs, network


@pytest.mark.parametrize("batch_size", [None, 1, 4, N, 100])
def test_results_are_the_models_in_inference(batch_size):
    model = network()
    result = Predictor(model, batch_size=batch_size)(inputs())
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, by_hand(model, inputs()), rtol=1e-5, atol=1e-6)


def test_the_model_is_left_as_it_is():
    model = network()
    model.layers[2].eval()  # not all are in training
    before, modes = model.state_dict(), [m.training for _, m in model.modules()]
    attributes = [set(vars(m)) for _, m in model.modules()]
    vector = model.vector
    for layer in (None, "layers.1"):
        Predictor(model, layer=layer)(inputs())
    assert [m.training for _, m in model.modules()] == modes
    assert [set(vars(m)) for _, m in model.modules()] == attributes
    assert model.vector is vector  # parameters have not moved
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value, before[name], err_msg=name)


def test_a_pass_is_not_recorded_and_keeps_to_its_threads():
    seen = []

    class Look(Module):
        def forward(self, x):
            seen.append((recording(), self.training, threads.threads()))
            return x

    Predictor(Look(), threads=3)(inputs())
    assert set(seen) == {(False, False, 3)}
    assert recording()


def test_threads_share_the_weights_and_nothing_else():
    model, meeting = network(), threading.Barrier(3)
    copies = []

    class Wait(Module):
        def __init__(self, inner):
            self.inner = inner

        def forward(self, x):
            meeting.wait(60)
            copies.append(self)
            return self.inner(x)

    predictor = Predictor(Wait(model), batch_size=N)
    with ThreadPoolExecutor(3) as pool:
        results = list(pool.map(predictor, [inputs()] * 3))
    assert len({id(c) for c in copies}) == 3
    assert len({id(p.data) for c in copies for p in c.parameters()}) == len(
        list(model.parameters())
    )
    for result in results:
        np.testing.assert_array_equal(result, results[0])


def test_a_copy_is_used_again_but_not_after_an_exception():
    seen: list[int] = []

    class Count(Module):
        def __init__(self):
            self.calls = 0

        def forward(self, x):
            self.calls += 1
            seen.append(self.calls)
            if x.max() > 5:
                raise ZeroDivisionError
            return x

    predictor = Predictor(Count(), batch_size=100)
    predictor(inputs())
    predictor(inputs())
    with pytest.raises(ZeroDivisionError):
        predictor(inputs() + 100)
    predictor(inputs())
    assert seen == [1, 2, 3, 1]


def test_a_layer_inside_ends_the_pass():
    class Fails(Module):
        def forward(self, x):
            raise ZeroDivisionError

    model = network()
    whole = Sequential(*model.layers, Fails())
    result = Predictor(whole, layer="layers.2", batch_size=7)(inputs())
    expected = by_hand(Sequential(*model.layers[:3]), inputs())
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
    assert result.shape == (N, 8)


def test_a_missing_layer_is_refused_with_names_near_it():
    with pytest.raises(SettingsError, match=r"such as 'layers.1'.*found 'layer.1'"):
        Predictor(network(), layer="layer.1")


def test_a_layer_that_is_not_called_is_an_error():
    class Some(Module):
        def __init__(self):
            self.first, self.second = Linear(3, 2), Linear(3, 2)

        def forward(self, x):
            return self.first(x)

    with pytest.raises(SettingsError, match="found 'second', which Some does not call"):
        Predictor(Some(), layer="second")(inputs())


def test_classes_are_the_places_of_the_largest_scores():
    model = network(5)
    result = Predictor(model, classes=True)(inputs())
    assert result.dtype == np.int64
    np.testing.assert_array_equal(result, by_hand(model, inputs()).argmax(1))


@pytest.mark.parametrize("last", [[], [Squeeze(1)]])
def test_one_score_has_no_class(last):
    with pytest.raises(ShapeError, match="two or more classes, found results of shape"):
        Predictor(Sequential(Linear(3, 1), *last), classes=True)(inputs())


def test_several_results_are_a_tuple():
    class Both(Module):
        def forward(self, x):
            return x, (x.sum(1), x[:, :1])

    results = Predictor(Both(), batch_size=10)(inputs())
    assert [part.shape for part in results] == [(N, 3), (N,), (N, 1)]
    np.testing.assert_array_equal(results[0], inputs())
    np.testing.assert_array_equal(results[2], inputs()[:, :1])


def test_no_samples_give_an_empty_result():
    result = Predictor(network())(inputs()[:0])
    assert (result.shape, result.dtype) == ((0, 2), np.float32)


def test_a_result_has_to_be_one_of_each_sample():
    class Mean(Module):
        def forward(self, x):
            return x.mean(0)

    with pytest.raises(ShapeError, match=r"Mean: expected a result for each of 53 samples.*\(3,\)"):
        Predictor(Mean(), batch_size=N)(inputs())


@pytest.mark.slow
def test_a_batch_fits_what_passes_between_layers():
    def size(model, sample, **options):
        fitted, result = Predictor(model, **options).tried(sample)
        np.testing.assert_array_equal(result, Predictor(model, **options)(sample))
        return fitted.batch_size

    small, large = Sequential(Linear(3, 8)), Sequential(Linear(3, 100_000), Linear(100_000, 2))
    sample = inputs(1)
    assert size(small, sample) == LARGEST_BATCH
    assert size(large, sample) == size(large, sample, layer="layers.0") == BATCH_BYTES // 400_000
    assert size(small, np.zeros((1, 600_000, 3), np.float32)) == 1
    assert size(small, sample, batch_size=5) == 5
    # Snapshots of other batch sizes have other tokens.
    snapshot = Predictor(small).snapshot()
    assert (
        snapshot.tried(sample)[0].token
        != snapshot.tried(inputs(1)[:, np.zeros(3000, int)].reshape(1, 1000, 3))[0].token
    )


def test_one_sample_is_tried_and_passes_again_with_all():
    class Count(Module):
        def forward(self, x):
            seen.append(len(x))
            return x * 2.0

    seen: list[int] = []
    predictor = Predictor(Count())
    result = predictor(inputs())
    assert seen == [1, N]
    np.testing.assert_array_equal(result, 2 * inputs())
    predictor(inputs()[:-1])
    assert seen == [1, N, N - 1]  # samples of this shape have been tried
    predictor(inputs()[:, :2])
    assert seen[3:] == [1, N]


def test_ids_stay_ids():
    ids = np.array([[2, 0]])
    table = Embedding(3, 4, seed=1)
    np.testing.assert_array_equal(Predictor(table)(ids), table(ids).data)


@pytest.mark.parametrize("wrong", [np.array(["a"]), np.array([None]), np.array(1.0), [1j]])
def test_samples_that_are_no_numbers_are_refused(wrong):
    with pytest.raises(DataError, match=r"expected numbers \(N, ...\), found"):
        network().predict(wrong)


def test_sequences_of_different_lengths_are_to_be_padded():
    even, uneven = (Ragged.of([np.ones((n, 3)) for n in lengths]) for lengths in ((2, 2), (1, 2)))
    assert Linear(3, 2).predict(even).shape == (2, 2, 2)
    with pytest.raises(DataError, match=r"predict: .* found sequences of 1 to 2 items; pad them"):
        Linear(3, 2).predict(uneven)


def test_a_snapshot_stays_what_the_model_was():
    model = network()
    predictor = Predictor(model, batch_size=4)
    first, same = predictor.snapshot(), predictor.snapshot()
    expected = first(inputs())
    model.flat[:] += 1
    np.testing.assert_array_equal(first(inputs()), expected)
    assert first.token == same.token
    assert predictor.snapshot().token != first.token
    assert Predictor(model, batch_size=5).snapshot().token != predictor.snapshot().token
    sent = pickle.loads(pickle.dumps(first))
    np.testing.assert_array_equal(sent(inputs()), expected)
    assert sys.getsizeof(sent) >= 4 * model.vector.size


def test_a_model_that_cannot_be_sent_is_an_error():
    model = network()
    model.lock = threading.Lock()
    with pytest.raises(SettingsError, match=r"can be pickled.*found Sequential \(cannot pickle"):
        Predictor(model).snapshot()
