"""Every operator gives the numbers of TensorFlow, and of OpenCV's reader or numpy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

from tests.daskdl.gradients import normal
from tests.daskdl.interop.checks import opencv
from tests.daskdl.interop.tensorflow.files import F4, const, graph, network, node, placeholder

IMAGES = (2, 9, 8, 3)


def w(*shape):
    return normal(*shape).astype("f4")


def ints(*values):
    return np.array(values, "i4")


def strided(stride):
    return {"strides": [1, stride, stride, 1], "data_format": "NHWC"}


def conv(operator, kernel, stride, padding, **more):
    return network(operator, [w(*kernel)], **strided(stride), padding=padding, **more)


def norm(x, scale=True):
    """Return the seven nodes of tf.nn.batch_normalization."""
    data = const("mean", w(3)) + const("var", np.abs(w(3)) + 1) + const("eps", np.float32(0.001))
    data += const("beta", w(3) - 1)
    if scale:
        data += const("gamma", 2 * w(3)) + node("gamma/read", "Identity", ["gamma"], T=F4)
    data += node("add", "Add", ["var", "eps"], T=F4) + node("rsqrt", "Rsqrt", ["add"], T=F4)
    s = "mul" if scale else "rsqrt"
    data += node("mul", "Mul", ["rsqrt", "gamma/read"], T=F4) if scale else b""
    data += node("mul_1", "Mul", [x, s], T=F4) + node("mul_2", "Mul", ["mean", s], T=F4)
    return (
        data
        + node("sub", "Sub", ["beta", "mul_2"], T=F4)
        + node("y", "Add", ["mul_1", "sub"], T=F4)
    )


POOL = {"ksize": [1, 3, 3, 1]}
X = placeholder("x", (-1, 9, 8, 3))
CASES = {
    "convolution": conv("Conv2D", (3, 3, 3, 4), 2, "SAME"),
    "convolution, even": conv("Conv2D", (4, 4, 3, 4), 3, "SAME"),
    "convolution without padding": conv("Conv2D", (3, 2, 3, 4), 1, "VALID"),
    "dilated": conv("Conv2D", (3, 3, 3, 4), 1, "SAME", dilations=[1, 2, 2, 1]),
    "given padding": conv("Conv2D", (3, 3, 3, 4), 2, "EXPLICIT",
                          explicit_paddings=[0, 0, 1, 0, 2, 1, 0, 0]),
    "depthwise": conv("DepthwiseConv2dNative", (3, 3, 3, 2), 2, "SAME"),
    "transposed": X + const("size", ints(2, 18, 16, 4)) + const("w", w(3, 3, 4, 3)) + node(
        "y", "Conv2DBackpropInput", ["size", "w", "x"], T=F4, padding="SAME", **strided(2)),
    "bias": conv("Conv2D", (3, 3, 3, 4), 2, "SAME") + const("b", w(4)) + node(
        "z", "BiasAdd", ["y", "b"], T=F4, data_format="NHWC"),
    "bias by addition": conv("Conv2D", (3, 3, 3, 4), 2, "SAME") + const("b", w(4)) + node(
        "z", "AddV2", ["y", "b"], T=F4),
    "bias of plain numbers": network("BiasAdd", [w(3)]),
    "fused batch norm": network("FusedBatchNormV3", [w(3), w(3), w(3), np.abs(w(3)) + 1],
                                is_training=False, epsilon=0.01, data_format="NHWC", U=F4),
    "batch norm": X + norm("x"),
    "batch norm without scale": X + norm("x", scale=False),
    "max pool": network("MaxPool", padding="SAME", **strided(2), **POOL),
    "mean pool": network("AvgPool", padding="SAME", **strided(2), **POOL),
    "mean pool without padding": network("AvgPool", padding="VALID", **strided(2), **POOL),
    "lrn": network("LRN", depth_radius=1, bias=2.0, alpha=0.3, beta=0.6),
    "bilinear": network("ResizeBilinear", [ints(5, 17)], half_pixel_centers=True),
    "bilinear, corners": network("ResizeBilinear", [ints(17, 15)], align_corners=True),
    "bilinear, as of old": network("ResizeBilinear", [ints(18, 4)]),
    "nearest": network("ResizeNearestNeighbor", [ints(18, 16)]),
    "relu6": network("Relu6"),
    "elu": network("Elu"),
    "leaky": network("LeakyRelu", alpha=0.3),
    "rsqrt": X + node("a", "Abs", ["x"], T=F4) + node("y", "Rsqrt", ["a"], T=F4),
    "square": network("Square"),
    "identity": network("Identity") + node("z", "Relu", ["y"], T=F4),
    "difference squared": network("SquaredDifference", [w(3)]),
    "sum of several": X + node("a", "Relu", ["x"], T=F4) + node("y", "AddN", ["x", "a", "a"],
        T=F4, N=3),
    "mean of pixels": network("Mean", [ints(1, 2)], keep_dims=False, Tidx=np.dtype("int32")),
    "mean, kept": network("Mean", [ints(1, 2)], keep_dims=True, Tidx=np.dtype("int32")),
    "mean of convolution": conv("Conv2D", (3, 3, 3, 4), 2, "SAME") + const("i", ints(1, 2)) + node(
        "z", "Mean", ["y", "i"], T=F4, keep_dims=False, Tidx=np.dtype("int32")),
    "largest channel of convolution": conv("Conv2D", (3, 3, 3, 4), 2, "SAME")
    + const("i", ints(3)) + node("z", "Max", ["y", "i"], T=F4, keep_dims=True,
        Tidx=np.dtype("int32")),
    "sum of rows": network("Sum", [ints(-1)], keep_dims=False, Tidx=np.dtype("int32")),
    "softmax": network("Softmax"),
    "log softmax": network("LogSoftmax"),
    "softmax of convolution": conv("Conv2D", (3, 3, 3, 4), 2, "SAME") + node("z", "Softmax",
        ["y"], T=F4),
    "argmax": network("ArgMax", [np.int32(3)], Tidx=np.dtype("int32"),
        output_type=np.dtype("int64")),
    "cast": X + node("a", "Cast", ["x"], SrcT=F4, DstT=np.dtype("int32")) + node(
        "y", "Cast", ["a"], SrcT=np.dtype("int32"), DstT=F4),
    "flatten": X + const("s", ints(-1, 216)) + const("w", w(216, 5)) + node(
        "a", "Reshape", ["x", "s"], T=F4, Tshape=np.dtype("int32")) + node("y", "MatMul", ["a",
        "w"], T=F4),
    "flatten by shape": X + node("s", "Shape", ["x"], T=F4, out_type=np.dtype("int32"))
    + const("i", ints(0)) + const("j", ints(1)) + const("k", ints(1)) + const("m", np.int32(-1))
    + node("n", "StridedSlice", ["s", "i", "j", "k"], T=np.dtype("int32"), Index=np.dtype("int32"),
           shrink_axis_mask=1, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0)
    + node("p", "Pack", ["n", "m"], T=np.dtype("int32"), N=2, axis=0)
    + node("y", "Reshape", ["x", "p"], T=F4, Tshape=np.dtype("int32")),
    "flatten of a convolution": conv("Conv2D", (3, 3, 3, 4), 2, "SAME") + const("s", ints(-1, 80))
    + node("z", "Reshape", ["y", "s"], T=F4, Tshape=np.dtype("int32")),
    "matmul, transposed": X + const("s", ints(-1, 216)) + const("w", w(5, 216)) + node(
        "a", "Reshape", ["x", "s"], T=F4, Tshape=np.dtype("int32")) + node(
        "y", "MatMul", ["a", "w"], T=F4, transpose_b=True, transpose_a=False),
    "batches of matrices": X + node("y", "BatchMatMulV2", ["x", "x"], T=F4, adj_y=True,
        adj_x=False),
    "squeeze": conv("Conv2D", (9, 8, 3, 4), 1, "VALID") + node("z", "Squeeze", ["y"], T=F4,
        squeeze_dims=[1, 2]),
    "expand": network("ExpandDims", [np.int32(1)], Tdim=np.dtype("int32")),
    "transpose": network("Transpose", [ints(0, 3, 1, 2)], Tperm=np.dtype("int32")),
    "concat of convolutions": conv("Conv2D", (3, 3, 3, 4), 1, "SAME") + const("axis",
        np.int32(3)) + node(
        "z", "ConcatV2", ["y", "x", "y", "axis"], T=F4, N=3, Tidx=np.dtype("int32")),
    "split": X + const("a", np.int32(3)) + node("s", "Split", ["a", "x"], T=F4, num_split=3) + node(
        "y", "Sub", ["s:2", "s"], T=F4) + node("z", "Mul", ["y", "s:1"], T=F4),
    "split into sizes": X + const("n", ints(2, 7)) + const("a", np.int32(1)) + node(
        "s", "SplitV", ["x", "n", "a"], T=F4, num_split=2, Tlen=np.dtype("int32")) + node("y",
        "Relu", ["s:1"], T=F4),
    "pad": conv("Conv2D", (3, 3, 3, 4), 1, "SAME") + const("p", np.array([[0, 0], [1, 2], [3, 0],
        [0, 1]], "i4"))
    + node("z", "Pad", ["y", "p"], T=F4, Tpaddings=np.dtype("int32")),
    "pad with a number": network("PadV2", [np.array([[0, 0], [1, 2], [3, 0], [0, 0]], "i4"),
        np.float32(2)],
                                 Tpaddings=np.dtype("int32")),
    "pad as in a mirror": network("MirrorPad", [np.array([[0, 0], [1, 2], [3, 0], [0, 0]], "i4")],
                                  Tpaddings=np.dtype("int32"), mode="REFLECT"),
    "slice": network("Slice", [ints(0, 1, 2, 0), ints(-1, 4, -1, 2)], Index=np.dtype("int32")),
    "strided slice": network(
        "StridedSlice", [ints(0, -1, 1, 0), ints(0, 0, 7, 1), ints(1, -2, 2, 1)], begin_mask=3,
        end_mask=3, shrink_axis_mask=8, ellipsis_mask=0, new_axis_mask=0, Index=np.dtype("int32")),
    "tile": network("Tile", [ints(1, 2, 1, 3)], Tmultiples=np.dtype("int32")),
    "gather": network("GatherV2", [ints(2, 0), np.int32(3)], Tindices=np.dtype("int32"),
                      Taxis=np.dtype("int32"), Tparams=F4, batch_dims=0),
    "fill": X + const("d", ints(9, 8, 3)) + const("v", np.float32(2.5)) + node(
        "f", "Fill", ["d", "v"], T=F4, index_type=np.dtype("int32")) + node("y", "Maximum", ["x",
        "f"], T=F4),
    "space to depth": X + const("p", np.array([[0, 0], [1, 0], [0, 0], [0, 0]], "i4")) + node(
        "a", "Pad", ["x", "p"], T=F4, Tpaddings=np.dtype("int32")) + node(
        "y", "SpaceToDepth", ["a"], T=F4, block_size=2, data_format="NHWC"),
    "depth to space": conv("Conv2D", (3, 3, 3, 12), 1, "SAME") + node(
        "z", "DepthToSpace", ["y"], T=F4, block_size=2, data_format="NHWC"),
    "plain, beside a convolution": conv("Conv2D", (3, 3, 3, 8), 1, "SAME") + const("c", w(9, 8,
        8)) + node(
        "z", "Mul", ["y", "c"], T=F4),
}  # fmt: skip
CASES |= {
    name.lower(): X + node("a", "Abs", ["x"], T=F4) + node("y", name, ["a"], T=F4)
    for name in ("Sqrt", "Log", "Neg", "Exp", "Sigmoid", "Tanh", "Softplus", "Softsign", "Selu",
                 "Floor", "Ceil", "Round", "Sin", "Cos", "Erf", "Reciprocal", "Sign")
}  # fmt: skip
CASES |= {
    name.lower(): network(name, [np.abs(w(3)) + 0.5])
    for name in ("Sub", "Mul", "RealDiv", "Maximum", "Minimum")
}


def convolved(x, kernel, dilation=1):
    """Convolve with a stride of 1 and SAME padding; filters are (3, 3, in, out)."""
    padded = np.pad(x, [(0, 0), (dilation, dilation), (dilation, dilation), (0, 0)])
    windows = sliding_window_view(padded, (2 * dilation + 1,) * 2, (1, 2))
    return np.einsum("nhwcij,ijco->nhwo", windows[..., ::dilation, ::dilation], kernel)


POSITIVE = np.abs(w(3)) + 0.5
#: Numbers of the cases that OpenCV's reader does not know or takes for other operators.
REFERENCES = {
    "argmax": lambda x: x.argmax(3),
    "batch norm without scale":
        lambda x: (x - w(3)) / np.sqrt(np.abs(w(3)) + 1.001) + w(3) - 1,
    "batches of matrices": lambda x: x @ x.swapaxes(2, 3),
    "bias of plain numbers": lambda x: x + w(3),
    "cast": np.trunc,
    "concat of convolutions":
        lambda x: np.concatenate([y := convolved(x, w(3, 3, 3, 4)), x, y], 3),
    "depth to space": lambda x: convolved(x, w(3, 3, 3, 12)).reshape(2, 9, 8, 2, 2, 3)
        .swapaxes(2, 3).reshape(2, 18, 16, 3),
    "difference squared": lambda x: (x - w(3)) ** 2,
    "dilated": lambda x: convolved(x, w(3, 3, 3, 4), 2),
    "expand": lambda x: x[:, None],
    "fill": lambda x: np.maximum(x, 2.5),
    "flatten": lambda x: x.reshape(2, 216) @ w(216, 5),
    "flatten by shape": lambda x: x.reshape(2, 216),
    "gather": lambda x: x[..., [2, 0]],
    "log softmax": lambda x: x - np.log(np.exp(x).sum(3, keepdims=True)),
    "matmul, transposed": lambda x: x.reshape(2, 216) @ w(5, 216).T,
    "maximum": lambda x: np.maximum(x, POSITIVE),
    "minimum": lambda x: np.minimum(x, POSITIVE),
    "neg": lambda x: -np.abs(x),
    "pad with a number":
        lambda x: np.pad(x, [(0, 0), (1, 2), (3, 0), (0, 0)], constant_values=2),
    "plain, beside a convolution": lambda x: convolved(x, w(3, 3, 3, 8)) * w(9, 8, 8),
    "rsqrt": lambda x: 1 / np.sqrt(np.abs(x)),
    "slice": lambda x: x[:, 1:5, 2:, :2],
    "space to depth":
        lambda x: np.pad(x, [(0, 0), (1, 0), (0, 0), (0, 0)]).reshape(2, 5, 2, 4, 2, 3)
        .swapaxes(2, 3).reshape(2, 5, 4, 12),
    "split": lambda x: (x[..., 2:] - x[..., :1]) * x[..., 1:2],
    "split into sizes": lambda x: np.maximum(x[:, 2:], 0),
    "strided slice": lambda x: x[:, ::-2, 1:7:2, 0],
    "sub": lambda x: x - POSITIVE,
    "tile": lambda x: np.tile(x, (1, 2, 1, 3)),
}  # fmt: skip


def run(data, x):
    return graph(data)(x).data


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_numbers_of_tensorflow(name):
    tf = pytest.importorskip("tensorflow")
    x = w(*IMAGES)
    definition = tf.compat.v1.GraphDef.FromString(CASES[name])
    last = definition.node[-1].name
    with tf.Graph().as_default() as session_graph:
        tf.import_graph_def(definition, name="")
        with tf.compat.v1.Session(graph=session_graph) as session:
            right = session.run(f"{last}:0", {"x:0": x})
    result = run(CASES[name], x)
    assert result.shape == right.shape
    np.testing.assert_allclose(result, right, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", REFERENCES)
def test_numbers_of_numpy(name):
    x = w(*IMAGES)
    right, result = REFERENCES[name](x), run(CASES[name], x)
    assert result.shape == right.shape
    np.testing.assert_allclose(result, right, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", sorted(CASES.keys() - REFERENCES.keys()))
def test_numbers_of_opencv(name):
    x = w(*IMAGES)
    net = opencv("Tensorflow")(np.frombuffer(CASES[name], np.uint8))
    net.setInput(np.ascontiguousarray(x.transpose(0, 3, 1, 2)))
    right, result = net.forward(), run(CASES[name], x)
    if result.ndim == 4 and right.shape != result.shape:
        right = right.transpose(0, 2, 3, 1)
    np.testing.assert_allclose(result, right.reshape(result.shape), atol=1e-5, rtol=1e-5)
