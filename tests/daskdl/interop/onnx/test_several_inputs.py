"""ONNX graphs of several inputs, trained and predicted by their names."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from daskdl.data import SampleSet
from daskdl.errors import SettingsError, ShapeError
from daskdl.interop import onnx
from daskdl.nn import Embedding, Linear, Module, MSELoss
from daskdl.optim import SGD
from daskdl.train import Trainer

A = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
B = np.random.default_rng(1).normal(size=(12, 2)).astype(np.float32)


class Two(Module):
    def __init__(self) -> None:
        self.linear = Linear(5, 2, seed=1)

    def forward(self, left, right):
        return self.linear(ops.concatenate(left, right))


def test_written_read_trained_and_predicted_by_name(tmp_path):
    pytest.importorskip("onnx")
    model = Two()
    onnx.save(model, tmp_path / "two.onnx", {"left": (3,), "right": (2,)})
    graph = onnx.load(tmp_path / "two.onnx")
    assert [name for name, *_ in graph.inputs] == ["left", "right"]
    wanted = model.predict({"right": B, "left": A})
    np.testing.assert_allclose(graph.predict({"right": B, "left": A}), wanted, rtol=1e-6)
    np.testing.assert_allclose(graph.predict((A, B)), wanted, rtol=1e-6)
    samples = SampleSet.from_arrays(x={"left": A, "right": B}, y=A[:, :2])
    history = Trainer(graph, MSELoss(), SGD(0.1)).fit(samples, epochs=5, progress=False)
    assert history["loss"][-1] < history["loss"][0]
    with pytest.raises(ShapeError, match=r"inputs called \['left', 'right'\], found \['a', 'b'\]"):
        graph.predict({"a": A, "b": B})


class Ids(Module):
    """Ids beside numbers, and results by name."""

    def __init__(self) -> None:
        self.table, self.linear = Embedding(5, 3, seed=1), Linear(3, 2, seed=2)

    def forward(self, ids, numbers):
        return {"wide": self.linear(numbers), "narrow": self.table(ids)}


def test_a_dtype_by_name_and_results_by_theirs(tmp_path):
    pytest.importorskip("onnx")
    shapes = {"ids": (), "numbers": (3,)}
    onnx.save(Ids(), tmp_path / "ids.onnx", shapes, {"ids": "int64"})
    graph = onnx.load(tmp_path / "ids.onnx")
    assert repr(graph).startswith("Graph(ids, numbers -> wide, narrow: ")
    x = {"ids": np.arange(12) % 5, "numbers": A}
    wanted = Ids().predict(x)
    for found, name in zip(graph.predict(x), wanted, strict=True):
        np.testing.assert_allclose(found, wanted[name], rtol=1e-5)
    with pytest.raises(SettingsError, match=r"names of inputs, \['ids', 'numbers'\], found \['id'"):
        onnx.save(Ids(), tmp_path / "no.onnx", shapes, {"id": "int64"})
    with pytest.raises(
        SettingsError, match=r"dtype: expected one for each of 2 inputs, found \['i"
    ):
        onnx.save(Ids(), tmp_path / "no.onnx", shapes, ["int64"])
