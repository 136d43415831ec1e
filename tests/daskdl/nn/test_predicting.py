"""Predicting: the methods of a module reach their packages, and layers load nothing of them."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from daskdl.data import SampleSet
from daskdl.metrics import Accuracy
from daskdl.nn import Linear, ReLU, Sequential

X = np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32)


def test_a_module_predicts_classifies_embeds_and_evaluates() -> None:
    model = Sequential(Linear(3, 4, seed=1), ReLU(), Linear(4, 5, seed=2))
    scores = model(X).data
    np.testing.assert_allclose(model.predict(X, batch_size=2, threads=1), scores, rtol=1e-5)
    classes = model.predict_class(X, batch_size=4)
    np.testing.assert_array_equal(classes, scores.argmax(1))
    inner = model.embed(X, "layers.0")
    np.testing.assert_allclose(inner, model.layers[0](X).data, rtol=1e-5)
    samples = SampleSet.from_arrays(x=X, y=np.where(np.arange(9) < 3, classes, (classes + 1) % 5))
    assert model.evaluate(samples, [Accuracy()]) == {"accuracy": 3 / 9}


def test_a_layer_may_go_by_the_name_of_a_method() -> None:
    class Own(Sequential):
        def __init__(self) -> None:
            self.embed = Linear(3, 2, seed=1)
            super().__init__(self.embed)

    assert Own().predict(X).shape == (9, 2)


def test_layers_load_nothing_of_dask() -> None:
    code = (
        "import daskdl.nn, sys; "
        "assert not {'dask', 'distributed', 'daskdl.predict'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
