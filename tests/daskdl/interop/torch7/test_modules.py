"""Every module of Torch7 gives the numbers of its successor in PyTorch, and of OpenCV's reader."""

from __future__ import annotations

import numpy as np
import pytest

import daskdl
from daskdl import nn as ours
from daskdl.errors import ModelFileError
from daskdl.interop.torch7.net import TABLE
from tests.daskdl.gradients import normal
from tests.daskdl.interop.checks import opencv
from tests.daskdl.interop.torch7.files import Made, Size, container, graph, nn, t7

IMAGES, ROWS = (2, 3, 9, 8), (2, 6)


def w(*shape):
    return normal(*shape).astype("f4")


def conv(out=4, into=3, k=3, pad=1, stride=1, kind="SpatialConvolution", **more):
    groups = more.get("groups", 1)
    weight = more.pop("weight", None)
    weight = w(out, into // groups, k, k) if weight is None else weight
    return nn(kind, nOutputPlane=out, nInputPlane=into, kW=k, kH=k, dW=stride, dH=stride, padW=pad,
              padH=pad, weight=weight, bias=w(out), **more)  # fmt: skip


def norm(kind="SpatialBatchNormalization", count=3, **more):
    return nn(kind, running_mean=w(count), running_var=np.abs(w(count)) + 0.5, eps=1e-3,
              momentum=0.1, weight=w(count), bias=w(count), **more)  # fmt: skip


def pool(kind, k=3, stride=2, pad=1, **more):
    more = {"ceil_mode": False, **more}
    return nn(kind, kW=k, kH=k, dW=stride, dH=stride, padW=pad, padH=pad, **more)


CASES = {
    "conv": (conv(stride=2), IMAGES,
             lambda t, x, m: t.conv2d(x, m["weight"], m["bias"], stride=2, padding=1)),
    "conv, flat": (
        conv(kind="SpatialConvolutionMM", weight=w(4, 27)), IMAGES,
        lambda t, x, m: t.conv2d(x, m["weight"].reshape(4, 3, 3, 3), m["bias"], padding=1)),
    "conv in groups": (
        conv(6, groups=3, kind="SpatialConvolution"), IMAGES,
        lambda t, x, m: t.conv2d(x, m["weight"], m["bias"], padding=1, groups=3)),
    "dilated": (
        conv(kind="SpatialDilatedConvolution", dilationW=2, dilationH=2), IMAGES,
        lambda t, x, m: t.conv2d(x, m["weight"], m["bias"], padding=1, dilation=2)),
    "transposed": (
        conv(kind="SpatialFullConvolution", stride=2, weight=w(3, 4, 3, 3), adjW=1, adjH=1), IMAGES,
        lambda t, x, m: t.conv_transpose2d(x, m["weight"], m["bias"], 2, 1, 1)),
    "linear": (nn("Linear", weight=w(4, 6), bias=w(4)), ROWS,
               lambda t, x, m: t.linear(x, m["weight"], m["bias"])),
    "batch norm": (
        norm(), IMAGES, lambda t, x, m: t.batch_norm(
            x, m["running_mean"], m["running_var"], m["weight"], m["bias"], eps=1e-3)),
    "batch norm of rows": (
        norm("BatchNormalization", 6), ROWS, lambda t, x, m: t.batch_norm(
            x, m["running_mean"], m["running_var"], m["weight"], m["bias"], eps=1e-3)),
    "instance norm": (
        nn("InstanceNormalization", weight=w(3), bias=w(3), eps=1e-3), IMAGES,
        lambda t, x, m: t.instance_norm(x, weight=m["weight"], bias=m["bias"], eps=1e-3)),
    "max pool": (pool("SpatialMaxPooling"), IMAGES, lambda t, x, m: t.max_pool2d(x, 3, 2, 1)),
    "max pool beyond": (pool("SpatialMaxPooling", 2, 2, 0, ceil_mode=True), IMAGES,
                        lambda t, x, m: t.max_pool2d(x, 2, 2, ceil_mode=True)),
    "mean pool": (pool("SpatialAveragePooling", count_include_pad=True, divide=True), IMAGES,
                  lambda t, x, m: t.avg_pool2d(x, 3, 2, 1)),
    "mean pool without padding": (
        pool("SpatialAveragePooling", count_include_pad=False, divide=True), IMAGES,
        lambda t, x, m: t.avg_pool2d(x, 3, 2, 1, count_include_pad=False)),
    "lrn": (nn("SpatialCrossMapLRN", size=3, alpha=0.1, beta=0.5, k=2), IMAGES,
            lambda t, x, m: t.local_response_norm(x, 3, 0.1, 0.5, 2)),
    "relu": (nn("ReLU"), IMAGES, lambda t, x, m: t.relu(x)),
    "relu6": (nn("ReLU6"), IMAGES, lambda t, x, m: t.relu6(x)),
    "hard tanh": (nn("HardTanh", min_val=-0.5, max_val=2), IMAGES,
                  lambda t, x, m: t.hardtanh(x, -0.5, 2)),
    "leaky": (nn("LeakyReLU", negval=0.2), IMAGES, lambda t, x, m: t.leaky_relu(x, 0.2)),
    "elu": (nn("ELU", alpha=0.5), IMAGES, lambda t, x, m: t.elu(x, 0.5)),
    "soft plus": (nn("SoftPlus", beta=2), IMAGES, lambda t, x, m: t.softplus(x, 2)),
    "threshold": (nn("Threshold", threshold=0.1, val=-1), IMAGES,
                  lambda t, x, m: t.threshold(x, 0.1, -1)),
    "prelu": (nn("PReLU", weight=w(3)), IMAGES, lambda t, x, m: t.prelu(x, m["weight"])),
    "tanh": (nn("Tanh"), IMAGES, lambda t, x, m: x.tanh()),
    "sigmoid": (nn("Sigmoid"), IMAGES, lambda t, x, m: x.sigmoid()),
    "abs": (nn("Abs"), IMAGES, lambda t, x, m: x.abs()),
    "soft sign": (nn("SoftSign"), IMAGES, lambda t, x, m: t.softsign(x)),
    "softmax": (nn("SoftMax"), ROWS, lambda t, x, m: x.softmax(1)),
    "log softmax": (nn("LogSoftMax"), ROWS, lambda t, x, m: x.log_softmax(1)),
    "spatial softmax": (nn("SpatialSoftMax"), IMAGES, lambda t, x, m: x.softmax(1)),
    "dropout": (container("Sequential", nn("Dropout", p=0.5), nn("SpatialDropout", p=0.5)), IMAGES,
                lambda t, x, m: x),
    "times": (nn("MulConstant", constant_scalar=3), IMAGES, lambda t, x, m: x * 3),
    "plus": (nn("AddConstant", constant_scalar=3), IMAGES, lambda t, x, m: x + 3),
    "square": (nn("Square"), IMAGES, lambda t, x, m: x**2),
    "power": (container("Sequential", nn("Square"), nn("Power", pow=1.5)), IMAGES,
              lambda t, x, m: x.abs() ** 3),
    "roots": (container("Sequential", nn("Abs"), nn("Sqrt"), nn("Exp"), nn("Log")), IMAGES,
              lambda t, x, m: x.abs() ** 0.5),
    "normalize": (nn("Normalize", p=2, eps=1e-10), ROWS, lambda t, x, m: t.normalize(x)),
    "view": (nn("View", size=Size(-1), numInputDims=3), IMAGES, lambda t, x, m: x.flatten(1)),
    "view of all": (nn("View", size=Size(-1, 12)), IMAGES, lambda t, x, m: x.reshape(-1, 12)),
    "view of samples": (nn("View", size=Size(216)), IMAGES, lambda t, x, m: x.flatten(1)),
    "reshape": (nn("Reshape", size=Size(27, 8)), IMAGES, lambda t, x, m: x.reshape(2, 27, 8)),
    "squeeze": (
        container("Sequential", conv(1, k=3), nn("Squeeze", dim=2)), IMAGES,
        lambda t, x, m: t.conv2d(x, m["modules"][0].fields["weight"],
                                 m["modules"][0].fields["bias"], padding=1)[:, 0]),
    "mean": (nn("Mean", dimension=3), IMAGES, lambda t, x, m: x.mean(2)),
    "max": (nn("Max", dimension=2, nInputDims=3), IMAGES, lambda t, x, m: x.amax(2)),
    "sum": (nn("Sum", dimension=2), IMAGES, lambda t, x, m: x.sum(1)),
    "zero padding": (nn("SpatialZeroPadding", pad_l=1, pad_r=2, pad_t=3, pad_b=-1), IMAGES,
                     lambda t, x, m: t.pad(x, (1, 2, 3, -1))),
    "reflection": (nn("SpatialReflectionPadding", pad_l=1, pad_r=2, pad_t=3, pad_b=1), IMAGES,
                   lambda t, x, m: t.pad(x, (1, 2, 3, 1), mode="reflect")),
    "replication": (nn("SpatialReplicationPadding", pad_l=1, pad_r=2, pad_t=3, pad_b=1), IMAGES,
                    lambda t, x, m: t.pad(x, (1, 2, 3, 1), mode="replicate")),
    "upsampling": (nn("SpatialUpSamplingNearest", scale_factor=3), IMAGES,
                   lambda t, x, m: t.interpolate(x, scale_factor=3)),
    "concat": (container("Concat", nn("ReLU"), nn("Identity"), dimension=2), IMAGES,
               lambda t, x, m: __import__("torch").cat([t.relu(x), x], 1)),
    "residual": (
        container("Sequential", container("ConcatTable", nn("Tanh"), nn("Identity")),
                  nn("CAddTable")), IMAGES, lambda t, x, m: x.tanh() + x),
    "tables": (
        container("Sequential", container("ConcatTable", container("ConcatTable", nn("Tanh"),
                  nn("Abs")), nn("Identity")), nn("FlattenTable"),
                  container("ParallelTable", nn("ReLU"), nn("Square"), nn("Identity")),
                  nn("JoinTable", dimension=1, nInputDims=3), nn("SpatialSoftMax")),
        IMAGES, lambda t, x, m: __import__("torch").cat([t.relu(x.tanh()), x**2, x], 1).softmax(1)),
    "table of products": (
        container("Sequential", container("ConcatTable", nn("Tanh"), nn("Abs"), nn("Identity")),
                  container("ConcatTable", nn("CMulTable"), nn("CSubTable"), nn("CMaxTable"),
                            nn("CMinTable"), nn("SelectTable", index=-1)),
                  nn("CAddTable")),
        IMAGES, lambda t, x, m: x.tanh() * x.abs() * x + x.tanh() - x.abs() - x
        + x.tanh().maximum(x.abs()).maximum(x) + x.tanh().minimum(x.abs()).minimum(x) + x),
}  # fmt: skip


def tensors(torch, fields):
    """Return a module's fields with PyTorch's tensors, also in modules inside it."""
    converted = {}
    for key, value in fields.items():
        if isinstance(value, np.ndarray):
            value = torch.tensor(value)
        elif isinstance(value, list):
            value = [Made(m.kind, **tensors(torch, m.fields)) for m in value]
        converted[key] = value
    return converted


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_numbers_of_pytorch(name, torch):
    module, shape, right = CASES[name]
    x = w(*shape)
    wanted = right(torch.nn.functional, torch.tensor(x), tensors(torch, module.fields)).numpy()
    result = graph(module)(x).data
    assert result.shape == wanted.shape
    np.testing.assert_allclose(result, wanted, atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["conv", "linear", "batch norm", "max pool", "mean pool", "view",
                                  "residual", "concat", "log softmax", "lrn"])  # fmt: skip
def test_numbers_of_opencv(tmp_path, name):
    reader = opencv("Torch")
    module, shape, _ = CASES[name]
    module = module if "modules" in module.fields else container("Sequential", module)
    (tmp_path / "n.t7").write_bytes(t7(module))
    x = w(*shape)
    net = reader(str(tmp_path / "n.t7"), True)
    net.setInput(x)
    result = daskdl.load(tmp_path / "n.t7").eval()(x).data
    np.testing.assert_allclose(result, net.forward().reshape(result.shape), atol=2e-5, rtol=1e-5)


def test_every_module_has_a_case():
    text = str([t7(module) for module, *_ in CASES.values()])
    missing = {kind for kind in TABLE if f"nn.{kind}\\" not in text}
    assert missing == {
        "CDivTable", "Clamp", "ContentLoss", "Contiguous", "Copy", "DepthConcat",
        "GradientReversal", "L1Penalty", "SpatialConvolutionLocal", "SpatialCrossMapLRN_temp",
        "StyleLoss", "TotalVariation",
    }  # fmt: skip


def test_a_network_as_a_module_of_our_own(tmp_path):
    head = nn("View", size=Size(80)), nn("Linear", weight=w(2, 80), bias=w(2))
    net = container(
        "Sequential", conv(), norm(count=4), nn("ReLU"), pool("SpatialMaxPooling"), *head
    )
    (tmp_path / "n.t7").write_bytes(t7({"model": net, "epoch": 3}))
    loaded = daskdl.load(tmp_path / "n.t7")
    assert isinstance(loaded, ours.Graph)
    assert loaded.inputs == (("x", "float32", (None, 3, None, None)),)
    kinds = {name: type(tensor).__name__ for name, tensor in loaded.held()}
    assert kinds == {
        "0.weight": "Parameter", "0.bias": "Parameter", "1.weight": "Parameter",
        "1.bias": "Parameter", "1.running_mean": "Buffer", "1.running_var": "Buffer",
        "5.weight": "Parameter", "5.bias": "Parameter",
    }  # fmt: skip
    loaded.train()
    loaded(w(*IMAGES)).sum().backward()
    assert all(np.abs(p.grad).max() > 0 for n, p in loaded.named_parameters() if n != "0.bias")


def test_channels_last():
    x = w(*IMAGES)
    right = graph(CASES["conv"][0])(x).data
    last = graph(CASES["conv"][0], channels_last=True)
    assert last.inputs[0][2] == (None, None, None, 3)
    np.testing.assert_array_equal(last(x.transpose(0, 2, 3, 1)).data, right.transpose(0, 2, 3, 1))


def test_old_statistics_and_other_packages():
    old = norm()
    old.fields["running_std"] = 1 / np.sqrt(old.fields.pop("running_var") + 1e-3)
    old.kind = "cudnn.SpatialBatchNormalization"
    m, x = old.fields, w(*IMAGES)
    right = (x - m["running_mean"].reshape(3, 1, 1)) * m["running_std"].reshape(3, 1, 1)
    right = right * m["weight"].reshape(3, 1, 1) + m["bias"].reshape(3, 1, 1)
    np.testing.assert_allclose(graph(old)(x).data, right, atol=1e-5)


def test_weights_in_common_are_one_parameter():
    shared = conv(3, 3)
    net = graph(container("Sequential", shared, nn("ReLU"), shared))
    assert {name for name, _ in net.held()} == {"0.weight", "0.bias"}


@pytest.mark.parametrize(
    ("module", "sentence"),
    [
        (nn("Dropout", p=1), "Dropout: p: expected at least 0 and less than 1, found 1"),
        (nn("Mine"), r"modules that are not supported: Mine \(at ''\)"),
        (container("Sequential", nn("gModule")), r"gModule \(at '0'\)"),
        (conv(out=5, weight=w(4, 27)), r"weight: expected \(5, 3, 3, 3\), found \(4, 27\)"),
        (nn("Linear", bias=w(3)), "expected a tensor weight"),
        (pool("SpatialMaxPooling", k=1), "expected a padding smaller than the kernel"),
        (pool("SpatialAveragePooling", divide=False), "sums instead of means"),
        (nn("CAddTable"), "expected a table of values, found one"),
        (container("Sequential", container("ConcatTable", nn("ReLU")), nn("ReLU")),
         "expected one value, found a table"),
        (nn("HardTanh", min_val="x"), "min_val: expected a number, found x"),
        (nn("View", size=Size(0, 3)), "size: expected lengths above 0"),
        (nn("Identity"), "the network computes nothing"),
        ({"a": 1}, "expected a module, found dict"),
        ("text", "expected a module, found str"),
    ],
)  # fmt: skip
def test_unsupported_modules_are_refused(module, sentence):
    with pytest.raises(ModelFileError, match=sentence):
        graph(module)
