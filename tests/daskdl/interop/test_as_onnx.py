"""Networks of all formats, written as ONNX: a runtime of others computes the same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import SettingsError
from daskdl.interop import onnx
from tests.daskdl.gradients import normal
from tests.daskdl.interop.caffe import files as caffe
from tests.daskdl.interop.caffe import test_layers as caffe_layers
from tests.daskdl.interop.keras import files as keras
from tests.daskdl.interop.keras import test_layers as keras_layers
from tests.daskdl.interop.tensorflow import files as tensorflow
from tests.daskdl.interop.tensorflow import test_operators as operators
from tests.daskdl.interop.torch7 import files as torch7
from tests.daskdl.interop.torch7 import test_modules as modules


def caffe_graph(name):
    text, weights, shapes = caffe_layers.CASES[name]
    given = [normal(*shape).astype("f4") for shape in shapes]
    return caffe.graph(caffe.network(text, shapes), weights), given


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
    runtime = pytest.importorskip("onnxruntime")
    graph, given = make(name)
    onnx.save(graph, tmp_path / "n.onnx")
    session = runtime.InferenceSession(tmp_path / "n.onnx")
    names = [i.name for i in session.get_inputs()]
    (right,) = session.run(None, dict(zip(names, given, strict=True)))
    np.testing.assert_allclose(graph(*given).data, right, atol=2e-5, rtol=1e-5)


def test_what_onnx_has_no_operator_for(tmp_path):
    graph, _ = caffe_graph("prior boxes")
    with pytest.raises(SettingsError, match=r"node 'out': ONNX has no operator PriorBox; graph\."):
        onnx.save(graph, tmp_path / "n.onnx")
