"""Predictors that are kept with a model: the same one while nothing changes, a new one after."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from daskdl import nn
from daskdl.kernels.vectors.reduce import digest
from daskdl.predict.kept import predictor_of
from daskdl.predict.predictor import Predictor

X = np.random.default_rng(0).normal(size=(3, 8, 8, 2)).astype(np.float32)
SETTINGS = (None, False, None, 1, "float32")


def network() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1, seed=0), nn.BatchNorm(4), nn.ReLU(), nn.Flatten(),
        nn.Linear(256, 5, seed=1),
    )  # fmt: skip


def replace_head(model: Any) -> None:
    model.layers[4] = nn.Linear(256, 5, seed=7)


def replace_activation(model: Any) -> None:
    model.layers[2] = nn.Tanh()  # without numbers


def write_weight(model: Any) -> None:
    model.layers[0].weight.data.reshape(-1)[7] += 1


def write_array(model: Any) -> None:
    model.flat[3:5] = model.flat[3:5][::-1].copy()


def statistics(model: Any) -> None:
    model.layers[1].running_variance.data[2] *= 4


def setting(model: Any) -> None:
    model.layers[1].eps = 0.5


def loaded(model: Any) -> None:
    model.load_state_dict({n: a + 1 for n, a in model.state_dict().items()})


@pytest.mark.parametrize(
    "change",
    [replace_head, replace_activation, write_weight, write_array, statistics, setting, loaded],
)
def test_a_change_of_any_kind_is_seen(change):
    model = network()
    before = model.predict(X)
    first = predictor_of(model, *SETTINGS)
    assert predictor_of(model, *SETTINGS) is first
    change(model)
    assert predictor_of(model, *SETTINGS) is not first
    result = model.predict(X)
    np.testing.assert_array_equal(result, Predictor(model)(X))
    assert (result != before).any()


def test_training_mode_is_no_change():
    model = network()
    first = predictor_of(model, *SETTINGS)
    model.train()
    assert predictor_of(model, *SETTINGS) is first


def test_an_unused_model_is_freed():
    model = network()
    model.predict(X)
    reference = weakref.ref(model)
    del model
    gc.collect()
    assert reference() is None


def test_several_threads_predict_with_one_model_side_by_side(monkeypatch):
    together = threading.Barrier(2, timeout=20)

    def met(array):
        if array is whole:
            together.wait()  # fails if a lock keeps one thread waiting
        return digest(array)

    model, right = network(), list[bool]()
    expected, whole = model.predict(X), model.joined.whole
    monkeypatch.setattr("daskdl.predict.kept.digest", met)

    def ask():
        right.extend(np.array_equal(model.predict(X, threads=1), expected) for _ in range(20))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 40


@pytest.mark.parametrize("size", [0, 1, 31, 33, 1000])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8])
def test_a_digest_depends_on_each_number(size, dtype):
    array = np.arange(size).astype(dtype)
    whole = digest(array)
    assert digest(array.copy()) == whole
    for place in {0, size // 2, size - 1} - {-1}:
        if size:
            other = array.copy()
            other[place] += 1
            assert digest(other) != whole


def test_changes_of_a_torch_module_are_seen():
    torch = pytest.importorskip("torch")
    from daskdl.torch import TorchModule

    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout())
    model, x = TorchModule(net), np.ones((2, 4), np.float32)
    first = predictor_of(model, *SETTINGS)
    model.predict(x)
    assert predictor_of(model, *SETTINGS) is first
    with torch.no_grad():
        for change in (
            lambda: net[0].weight.add_(1),
            lambda: net[1].running_mean.add_(1),
            lambda: setattr(net[1], "eps", 0.5),
            lambda: net.append(torch.nn.ReLU()),
        ):
            change()
            net.eval()
            np.testing.assert_allclose(model.predict(x), net(torch.from_numpy(x)), rtol=1e-5)
