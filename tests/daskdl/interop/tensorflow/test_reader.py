"""A frozen graph is read: layers that are recognised, inputs and outputs, and refusals."""

from __future__ import annotations

import tarfile

import numpy as np
import pytest

import daskdl
from ci.example_data import downloaded
from daskdl.errors import ModelFileError
from tests.daskdl.gradients import normal
from tests.daskdl.interop.checks import opencv
from tests.daskdl.interop.tensorflow.files import (
    F4,
    const,
    field,
    graph,
    network,
    node,
    number,
    shape,
)
from tests.daskdl.interop.tensorflow.test_operators import CASES, IMAGES, X, norm, w


def operators(net):
    return [n.operator for n in net.nodes if n.operator != "Transpose"]


def test_seven_nodes_are_one_normalisation():
    net = graph(CASES["batch norm"])
    assert operators(net) == ["BatchNormalization"]
    kinds = {name: type(parameter).__name__ for name, parameter in net.held()}
    assert kinds == {
        "beta": "Parameter",
        "gamma/read": "Parameter",
        "mean": "Buffer",
        "var": "Buffer",
    }


def test_a_bias_is_part_of_its_convolution():
    assert operators(graph(CASES["bias"])) == ["Conv"]
    assert operators(graph(CASES["bias by addition"])) == ["Conv"]


def test_images_stay_channels_last_in_memory():
    net = graph(CASES["concat of convolutions"])
    y = net(w(*IMAGES)).data
    assert y.flags.c_contiguous
    assert sum(n.operator == "Transpose" for n in net.nodes) == 3  # filters, input and output


def test_parts_of_a_graph():
    data = CASES["bias"] + node("out", "Sigmoid", ["z"], T=F4) + node("aside", "Unknown", ["z"])
    with pytest.raises(ModelFileError, match=r"Unknown \(node 'aside'\); outputs= and inputs="):
        graph(data)
    whole = graph(data, outputs=["out"])
    part = graph(data, inputs=["z"], outputs=["out"])
    z = w(2, 5, 4, 4)
    np.testing.assert_allclose(part(z).data, 1 / (1 + np.exp(-z)), rtol=1e-5)
    assert [name for name, *_ in part.inputs] == ["z"]
    assert len(whole.nodes) > len(part.nodes)


def test_pictures_that_the_graph_would_decode():
    data = const("bytes", np.zeros(1, "u1")) + node("decoded", "DecodeJpeg", ["bytes"])
    data += node("cast", "Cast", ["decoded"], SrcT=np.dtype("uint8"), DstT=F4)
    data += const("axis", np.int32(0)) + node("expand", "ExpandDims", ["cast", "axis"])
    net = graph(data)
    assert net.inputs == (("decoded", "uint8", (None, None, None)),)
    assert net(np.full((4, 5, 3), 7, "u1")).shape == (1, 4, 5, 3)


def test_nodes_may_come_in_any_order():
    data = node("y", "Relu", ["a"], T=F4) + node("a", "Neg", ["x"], T=F4) + X
    x = w(*IMAGES)
    np.testing.assert_array_equal(graph(data)(x).data, np.maximum(-x, 0))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (X + node("y", "Relu", ["none"]), "nothing computes 'none'"),
        (node("y", "Relu", ["z"]) + node("z", "Neg", ["y"]) + node("o", "Abs", ["y"]), "its own"),
        (X + X + node("y", "Relu", ["x"]), "names of nodes come twice"),
        (X, "no node computes anything"),
        (network("Conv2D", [w(3, 3, 3, 4)], padding="OTHER", strides=[1, 1, 1, 1]), "padding: exp"),
        (network("Conv2D", [w(3, 3)], padding="SAME", strides=[1, 1, 1, 1]), "filters of four"),
        (network("Conv2D", [w(3, 3, 3, 4)], strides=[1, 9999, 1, 1]), "from 1 to 4096"),
        (X + node("y", "Conv2D", ["x", "x"]), "expected filters as a constant"),
        (network("FusedBatchNorm", [w(3)] * 4, is_training=True), "freeze the graph for inference"),
        (network("Transpose", [np.array([0, 0, 1], "i4")]), "expected each axis once"),
        (network("Relu", (), data_format="NHWC") + node("z", "MaxPool", ["y"], data_format="AB"),
         "of NHWC or NCHW, found AB"),
        (X + node("y", "Split", ["x:3", "x"]), "has no result 3"),
        (field(1, b""), "operators that are not supported:"),
        (b"", "there are no nodes"),
        (field(2, b"saved model"), "it is a SavedModel"),
        (const("c", np.zeros(3, "f4"))[:-2], "goes beyond"),
    ],
)  # fmt: skip
def test_unsupported_graphs_are_refused(data, sentence):
    with pytest.raises(ModelFileError, match=sentence):
        graph(data)


@pytest.mark.long
def test_a_mobilenet_of_opencv(tmp_path):
    archive = downloaded("nudity==0.2.3", tmp_path, source=True)
    if archive is None:
        pytest.skip("the package cannot be had")
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path, filter="data")
    path = tmp_path / "nudity-0.2.3" / "nudity" / "files" / "retrained_graph.pb"
    net = daskdl.load(path).eval()
    assert operators(net).count("BatchNormalization") == 27
    x = normal(2, 224, 224, 3).astype("f4")
    right = opencv("Tensorflow")(str(path))
    right.setInput(np.ascontiguousarray(x.transpose(0, 3, 1, 2)))
    np.testing.assert_allclose(net(x).data, right.forward(), atol=1e-4)


DATA = (
    X + norm("x") + const("w", w(3, 3, 3, 4))
    + node("c", "Conv2D", ["y", "w"], T=F4, padding="SAME", strides=[1, 2, 2, 1])
    + node("p", "MaxPool", ["c"], ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    + const("s", np.array([-1, 16], "i4")) + node("r", "Reshape", ["p", "s"], T=F4)
    + const("m", w(16, 2)) + node("d", "MatMul", ["r", "m"], T=F4) + node("o", "Softmax", ["d"])
)  # fmt: skip


def tensor(lengths, payload=b""):
    proto = number(1, 1) + field(2, shape(lengths)) + payload
    value = field(5, field(1, b"value") + field(2, field(8, proto)))
    return X + field(1, field(1, b"c") + field(2, b"Const") + value) + node("y", "Add", ["x", "c"])


@pytest.mark.parametrize("lengths", [[1 << 40, 1 << 40], [1 << 34], [-1, 4], [7], [1] * 40])
def test_shapes_that_do_not_fit_the_bytes(lengths):
    with pytest.raises(ModelFileError, match="expected"):
        graph(tensor(lengths, field(4, b"\0" * 12)))


def test_one_number_for_a_whole_tensor():
    assert graph(tensor([8, 3], field(5, b"\0\0\x80\x3f")))(w(1, 9, 8, 3)).shape == (1, 9, 8, 3)
    with pytest.raises(ModelFileError, match="expected 1000000000 numbers"):
        graph(tensor([1000, 1000, 1000], field(5, b"\0\0\x80\x3f")))


@pytest.mark.slow
def test_a_chain_that_is_very_long():
    data = X + b"".join(
        node(f"n{i}", "Identity", [f"n{i - 1}" if i else "x"], T=F4) for i in range(20_000)
    )
    net = graph(data + node("y", "Relu", ["n19999"], T=F4))
    assert len(net.nodes) == 1
