"""ONNX graphs of several inputs, trained and predicted by their names."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import ops
from daskdl.data import SampleSet
from daskdl.errors import ShapeError
from daskdl.interop import onnx
from daskdl.nn import Linear, Module, MSELoss
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
