"""ONNX files as other programs write them: any order, float64, fixed batches, quantised."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import daskdl
from daskdl.errors import ModelFileError, ShapeError
from daskdl.interop.onnx.graphs import graph_model
from daskdl.interop.onnx.reader import from_proto
from daskdl.nn.operators import KEYS, TABLE
from tests.daskdl.gradients import normal
from tests.daskdl.interop.onnx.models import file_of, run_onnxruntime

FLOAT, DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE


def read(*parts, opset=21, **more):
    return from_proto(file_of(*parts, opset=opset, **more), "m").eval()


node = helper.make_node


@pytest.mark.parametrize("seed", range(6))
def test_nodes_come_in_any_order(seed):
    x, w = normal(5, 4).astype("f4"), normal(4, 4).astype("f4")
    body = helper.make_graph(
        [node("Neg", ["i"], ["o"]), node("Mul", ["d", "two"], ["i"])], "b", [],
        [helper.make_tensor_value_info("o", FLOAT, None)],
    )  # fmt: skip
    other = helper.make_graph([node("Relu", ["d"], ["q"])], "e", [],
                              [helper.make_tensor_value_info("q", FLOAT, None)])  # fmt: skip
    nodes = [
        node("MatMul", ["x", "w"], ["a"]), node("Relu", ["a"], ["b"]),
        node("Sub", ["b", "x"], ["c"]), node("Add", ["a", "c"], ["d"]),
        node("If", ["f"], ["y"], then_branch=body, else_branch=other),
    ]  # fmt: skip
    order = np.random.default_rng(seed).permutation(len(nodes))
    net = read([nodes[i] for i in order], {"x": (FLOAT, ["n", 4])}, ["y"],
               {"w": w, "two": np.float32(2), "f": np.array(True)})  # fmt: skip
    a = x @ w
    np.testing.assert_allclose(
        net.predict(x), -2 * (a + np.maximum(a, 0) - x), rtol=1e-4, atol=1e-4
    )


def test_a_circle_is_refused():
    nodes = [node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"])]
    with pytest.raises(ModelFileError, match="expected inputs that are computed before, found b"):
        read(nodes, {"x": (FLOAT, ["n", 4])}, ["b"])


def test_a_file_without_a_weight_is_refused():
    nodes = [node("Clip", ["x", "low"], ["a"])]
    with pytest.raises(ModelFileError, match=r"Clip a reads low, but no input.*export the model"):
        read(nodes, {"x": (FLOAT, ["n", 4])}, ["a"])


@pytest.mark.parametrize("how", ["array", "dict", "frame", "dask"])
def test_float64_is_not_rounded(how):
    start = 1_700_000_000.0
    net = read([node("Sub", ["x", "s"], ["y"])], {"x": (DOUBLE, ["n", 2])}, ["y"],
               {"s": np.float64(start)})  # fmt: skip
    x = start + np.array([[0.5, 1.5], [20.25, 61.0]])
    if how == "frame":
        pd = pytest.importorskip("pandas")
        result = net.predict(pd.DataFrame(x)).to_numpy()
    elif how == "dask":
        da = pytest.importorskip("dask.array")
        result = net.predict(da.from_array(x, chunks=(1, 2))).compute()
    else:
        result = net.predict({"x": x} if how == "dict" else x)
    np.testing.assert_array_equal(result, x - start)


def test_a_fixed_batch_is_passed_whole(tmp_path):
    net = read([node("Reshape", ["x", "s"], ["y"])], {"x": (FLOAT, [6, 4])}, ["y"],
               {"s": np.array([6, 2, 2])})  # fmt: skip
    x = normal(12, 4).astype("f4")
    np.testing.assert_array_equal(net.predict(x), x.reshape(12, 2, 2))
    daskdl.save(net, tmp_path / "m.safetensors")
    again = daskdl.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(again.predict(x), x.reshape(12, 2, 2))
    for one in (net, again):
        with pytest.raises(ShapeError, match="the file is of batches of 6 samples: give"):
            one.predict(x[:4])
    assert read([node("Relu", ["x"], ["y"])], {"x": (FLOAT, [1, 4])}, ["y"])._batch is None
    faulty = read([node("Reshape", ["x", "s"], ["y"])], {"x": (FLOAT, [6, 4])}, ["y"],
                  {"s": np.array([5, 2])})  # fmt: skip
    with pytest.raises(ShapeError, match=r"size 24 into shape \(5, ?2\)$"):
        faulty.predict(x[:6])


def test_states_and_flags_are_passed_whole():
    w, r = normal(1, 12, 4).astype("f4"), normal(1, 12, 3).astype("f4")
    net = read(
        [node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
         node("LSTM", ["t", "w", "r", "", "", "h", "c"], ["", "hn", "cn"], hidden_size=3)],
        {"x": (FLOAT, ["n", 5, 4]), "h": (FLOAT, [1, "n", 3]), "c": (FLOAT, [1, "n", 3])},
        ["hn", "cn"], {"w": w, "r": r},
    )  # fmt: skip
    inputs = {"x": normal(6, 5, 4).astype("f4"), "h": normal(1, 6, 3).astype("f4"),
             "c": normal(1, 6, 3).astype("f4")}  # fmt: skip
    for result, right in zip(net.predict(inputs), net(**inputs), strict=True):
        np.testing.assert_allclose(result, right.data, rtol=1e-5, atol=1e-6)
    flag = read([node("Where", ["f", "x", "z"], ["y"])],
                {"x": (FLOAT, ["n", 4]), "f": (TensorProto.BOOL, [])}, ["y"],
                {"z": np.float32(0)})  # fmt: skip
    x = normal(6, 4).astype("f4")
    np.testing.assert_array_equal(flag.predict({"x": x, "f": np.array(True)}), x)
    assert not flag.predict({"x": x, "f": np.array(False)}).any()


@pytest.mark.parametrize("operator", sorted(set(TABLE) - {"If", "Loop", "Scan", "SequenceMap"}))
def test_attributes_that_are_not_known_are_refused(operator):
    domain, _, name = operator.rpartition(":")
    strange = node(name, ["x"], ["y"], domain=domain, strength=2.0)
    with pytest.raises(ModelFileError, match=rf"{operator}: strength: not known to this reader"):
        read([strange], {"x": (FLOAT, ["n", 4])}, ["y"], domains=[domain] if domain else [])


def test_attributes_with_one_known_value():
    names = ["s", "b", "m", "v"]
    ones = dict.fromkeys(names, np.ones(4, "f4"))
    for spatial in (1, 0):
        norm = node("BatchNormalization", ["x", *names], ["y"], spatial=spatial)
        parts = [norm], {"x": (FLOAT, ["n", 4])}, ["y"], ones
        if spatial:
            read(*parts, opset=7)
            continue
        with pytest.raises(ModelFileError, match=r"spatial: expected 1, found \[0\]; export the"):
            read(*parts, opset=7)


@pytest.mark.parametrize(("axes", "filter_axes"), [(1, 2), (2, 1), (4, 4)])
def test_a_transposed_convolution_needs_filters_of_its_axes(axes, filter_axes):
    net = read([node("ConvTranspose", ["x", "w"], ["y"])], {"x": (FLOAT, ["n"] * (axes + 2))},
               ["y"], {"w": np.ones((2, 3, *(1,) * filter_axes), "f4")})  # fmt: skip
    with pytest.raises(ShapeError, match="ConvTranspose: expected 1 to 3 axes behind the channels"):
        net(np.ones((1, 2, *(4,) * axes), "f4"))


#: Attributes of the standard that change no number, or repeat what the inputs say.
WITHOUT_EFFECT = {
    "consumed_inputs", "is_test", "stash_type", "kernel_shape", "hidden_size", "output_sequence",
    "round_mode", "saturate", "softmax_precision", "precision", "chunk_size", "sorted", "type",
    "sparse_value", "value_string", "value_strings",
}  # fmt: skip
#: Attributes that code outside of the operator's function reads.
ELSEWHERE = {
    "BatchNormalization.spatial", "Scan.directions", "SequenceEmpty.dtype", "Gemm.broadcast",
}  # fmt: skip


@functools.cache
def texts_of(function):
    """Return all texts in a function of the table and in the functions that it calls."""
    home, texts = vars(inspect.getmodule(function)), set()
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except SyntaxError:  # a lambda's line
        return texts
    for part in ast.walk(tree):
        if isinstance(part, ast.Constant):
            texts.add(part.value)
        value = home.get(part.id) if isinstance(part, ast.Name) else None
        if isinstance(value, dict | tuple):
            texts |= {text for text in value if isinstance(text, str)}
        if inspect.isfunction(value) and value is not function and "operators" in value.__module__:
            texts |= texts_of(value)
    return texts


def test_all_attributes_of_the_standard_are_read():
    unread = set()
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain or schema.name not in TABLE or schema.name in KEYS:
            continue
        texts = texts_of(inspect.unwrap(TABLE[schema.name]))
        unread |= {f"{schema.name}.{name}" for name in schema.attributes
                   if name not in texts and name not in WITHOUT_EFFECT}  # fmt: skip
    assert unread == ELSEWHERE


INTEGERS = np.random.default_rng(0).integers


def quantised(shape, kind="u1"):
    low, high = (0, 256) if kind == "u1" else (-128, 128)
    return INTEGERS(low, high, shape).astype(kind)


X, Y = quantised((2, 3, 4, 4)), quantised((2, 3, 4, 4))
SX, SY, SZ = np.float32(0.03), np.float32(0.05), np.float32(0.04)
ZX, ZY, ZZ = np.uint8(120), np.uint8(100), np.uint8(130)
BOTH = ["x", "sx", "zx", "y", "sy", "zy", "sz", "zz"]
ONE = ["x", "sx", "zx", "sz", "zz"]
CONTRIB = {
    "QLinearAdd": (BOTH, {}), "QLinearMul": (BOTH, {}), "QLinearSigmoid": (ONE, {}),
    "QLinearLeakyRelu": (ONE, {"alpha": 0.1}),
    "QLinearGlobalAveragePool": (ONE, {"channels_last": 0}),
    "QLinearAveragePool": (ONE, {"kernel_shape": [2, 2], "strides": [2, 2]}),
    "QLinearConcat": (["sz", "zz", *BOTH[:6]], {"axis": 1}),
    "QLinearWhere": (["b", *BOTH], {}),
    "QLinearSoftmax": (["x", "sx", "zx", "s0", "z0"], {"axis": 1, "opset": 13}),
    "QGemm": (["p", "sx", "zx", "q", "sq", "zq", "c", "sz", "zz"], {"transB": 1}),
    "MatMulIntegerToFloat": (["p", "r", "sx", "sq", "zx", "zr", "f"], {}),
    "DynamicQuantizeMatMul": (["g", "r", "sy", "zy", "f"], {}),
    "DequantizeLinear": (["x", "sx", "zx"], {}),
}  # fmt: skip
VALUES = {
    "x": X, "y": Y, "sx": SX, "sy": SY, "sz": SZ, "zx": ZX, "zy": ZY, "zz": ZZ, "b": X > 99,
    "s0": np.float32(1 / 256), "z0": np.uint8(0), "p": quantised((5, 6)),
    "q": quantised((4, 6), "i1") // 4,  # onnxruntime cuts sums of two products to 16 bits
    "sq": np.array([0.01, 0.02, 0.03, 0.04], "f4"), "zq": np.zeros(4, "i1"),
    "r": quantised((6, 4)), "zr": np.uint8(128), "c": INTEGERS(-99, 99, 4).astype("i4"),
    "f": normal(4).astype("f4"), "g": normal(5, 6).astype("f4"),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTRIB)
def test_quantised_operators_of_onnxruntime(name):
    names, attributes = CONTRIB[name]
    values = {n: VALUES[n] for n in names}
    first = next(n for n in names if values[n].ndim > 1)
    kind = helper.np_dtype_to_tensor_dtype(values[first].dtype)
    constants = {n: v for n, v in values.items() if n != first}
    model = file_of([node(name, names, ["out"], domain="com.microsoft", **attributes)],
                 {first: (kind, list(values[first].shape))}, ["out"], constants,
                 domains=["com.microsoft"])  # fmt: skip
    model.graph.output[0].type.Clear()
    integers = name not in ("MatMulIntegerToFloat", "DynamicQuantizeMatMul", "DequantizeLinear")
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.UINT8 if integers else FLOAT
    (right,) = run_onnxruntime(model, values[first])
    net = from_proto(model, "m").eval()
    result = net(values[first]).data
    assert result.dtype == right.dtype
    np.testing.assert_allclose(result.astype("f8"), right, atol=1 if integers else 1e-4)
    assert not integers or (result != right).mean() < 0.05  # halves may be rounded otherwise
    assert {one.domain for one in graph_model(net).opset_import} == {"", "com.microsoft"}


def test_half_pixels_of_nearest_neighbours_in_old_files():
    x = np.arange(25, dtype="f4").reshape(1, 1, 5, 5)
    resize = node("Resize", ["x", "roi", "scales"], ["y"], mode="nearest",
                  coordinate_transformation_mode="tf_half_pixel_for_nn")  # fmt: skip
    net = read([resize], {"x": (FLOAT, [1, 1, 5, 5])}, ["y"],
               {"roi": np.zeros(0, "f4"), "scales": np.array([1, 1, 0.6, 0.6], "f4")},
               opset=11)  # fmt: skip
    right = [6, 7, 9, 11, 12, 14, 21, 22, 24]  # onnxruntime's
    np.testing.assert_array_equal(net.predict(x).ravel(), right)
