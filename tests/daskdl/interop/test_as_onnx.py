"""Networks of all formats written as ONNX: onnxruntime computes the same numbers."""

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
from tests.daskdl.gradients import normal
from tests.daskdl.interop.caffe import files as caffe
from tests.daskdl.interop.caffe import test_layers as caffe_layers
from tests.daskdl.interop.keras import files as keras
from tests.daskdl.interop.keras import test_layers as keras_layers
from tests.daskdl.interop.onnx.models import run_onnxruntime
from tests.daskdl.interop.tensorflow import files as tensorflow
from tests.daskdl.interop.tensorflow import test_operators as operators
from tests.daskdl.interop.torch7 import files as torch7
from tests.daskdl.interop.torch7 import test_modules as modules


def caffe_graph(name):
    text, weights, shapes = caffe_layers.CASES[name]
    arrays = [normal(*shape).astype("f4") for shape in shapes]
    return caffe.graph(caffe.network(text, shapes), weights), arrays


def tensorflow_graph(name):
    return tensorflow.graph(operators.CASES[name]), [normal(*operators.IMAGES).astype("f4")]


def keras_graph(name):
    config, weights, x = keras_layers.parts(name)
    return keras.graph(keras.h5(config, weights)), [x]


def torch7_graph(name):
    module, shape, _ = modules.CASES[name]
    return torch7.graph(module), [normal(*shape).astype("f4")]


CASES = [
    (caffe_graph, name)
    for name in ("batch norm and scale", "deconvolution", "mean pooling beyond the end", "crop",
                 "lrn within", "normalize", "flatten in the middle", "mvn")
]  # fmt: skip
CASES += [
    (tensorflow_graph, name)
    for name in ("convolution", "transposed", "batch norm", "flatten by shape", "strided slice",
                 "pad", "bilinear, corners", "concat of convolutions")
]  # fmt: skip
CASES += [
    (keras_graph, name)
    for name in ("pictures to classes", "lstm", "gru, reset before", "rnn backwards", "separable",
                 "bidirectional", "causal conv", "hard_sigmoid")
]  # fmt: skip
CASES += [(torch7_graph, name) for name in ("batch norm", "tables", "transposed", "view", "prelu")]


@pytest.mark.parametrize(("make", "name"), CASES)
def test_numbers_of_onnxruntime(tmp_path, make, name):
    graph, arrays = make(name)
    onnx.save(graph, tmp_path / "n.onnx")
    (right,) = run_onnxruntime(tmp_path / "n.onnx", *arrays)
    np.testing.assert_allclose(graph(*arrays).data, right, atol=2e-5, rtol=1e-5)


def test_operators_that_onnx_lacks_are_refused(tmp_path):
    graph, _ = caffe_graph("prior boxes")
    with pytest.raises(SettingsError, match=r"node 'out': ONNX has no operator PriorBox; graph\."):
        onnx.save(graph, tmp_path / "n.onnx")


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
    """Takes ids and numbers, and returns results by name."""

    def __init__(self) -> None:
        self.table, self.linear = Embedding(5, 3, seed=1), Linear(3, 2, seed=2)

    def forward(self, ids, numbers):
        return {"wide": self.linear(numbers), "narrow": self.table(ids)}


def test_dtypes_and_results_by_name(tmp_path):
    pytest.importorskip("onnx")
    shapes = {"ids": (), "numbers": (3,)}
    onnx.save(Ids(), tmp_path / "ids.onnx", shapes, {"ids": "int64"})
    graph = onnx.load(tmp_path / "ids.onnx")
    assert repr(graph).startswith("Graph(ids, numbers -> wide, narrow: ")
    x = {"ids": np.arange(12) % 5, "numbers": A}
    wanted = Ids().predict(x)
    for result, name in zip(graph.predict(x), wanted, strict=True):
        np.testing.assert_allclose(result, wanted[name], rtol=1e-5)
    with pytest.raises(SettingsError, match=r"names of inputs, \['ids', 'numbers'\], found \['id'"):
        onnx.save(Ids(), tmp_path / "no.onnx", shapes, {"id": "int64"})
    with pytest.raises(
        SettingsError, match=r"dtype: expected one for each of 2 inputs, found \['i"
    ):
        onnx.save(Ids(), tmp_path / "no.onnx", shapes, ["int64"])
