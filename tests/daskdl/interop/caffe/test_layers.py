"""Every layer gives the numbers of OpenCV's reader of Caffe's files, or of its formula."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import ModelFileError
from daskdl.interop.caffe.layers import TABLE
from daskdl.nn.core.parameter import Parameter
from tests.daskdl.gradients import normal
from tests.daskdl.interop.caffe.files import caffemodel, graph, layer, network
from tests.daskdl.interop.checks import opencv

ONE = ((2, 3, 9, 8),)
TWO = ((2, 3, 9, 8),) * 2


def w(*shape):
    return normal(*shape).astype("f4")


def one(kind, parameter="", settings="", *arrays, shapes=ONE):
    """Return the case of a single layer: its text, weights, shapes of inputs."""
    text = f"{parameter}_param {{ {settings} }}" if parameter else ""
    return layer(kind, text), {"l": list(arrays)} if arrays else {}, shapes


#: name: (layers, weights, shapes of inputs)
CASES = {
    "convolution": one(
        "Convolution", "convolution", "num_output: 4 kernel_size: 3 pad: 1 stride: 2",
        w(4, 3, 3, 3), w(4)),
    "convolution of two axes": one(
        "Convolution", "convolution",
        "num_output: 6 kernel_h: 3 kernel_w: 1 pad_h: 1 pad_w: 0 stride_h: 1 stride_w: 2 "
        "group: 3 bias_term: false", w(6, 1, 3, 1)),
    "dilated convolution": one(
        "Convolution", "convolution", "num_output: 4 kernel_size: 3 dilation: 2 pad: 2",
        w(4, 3, 3, 3), w(4)),
    "depthwise": one(
        "DepthwiseConvolution", "convolution", "num_output: 3 kernel_size: 3", w(3, 1, 3, 3), w(3)),
    "deconvolution": one(
        "Deconvolution", "convolution", "num_output: 5 kernel_size: 4 stride: 2 pad: 1",
        w(3, 5, 4, 4), w(5)),
    "deconvolution in groups": one(
        "Deconvolution", "convolution",
        "num_output: 3 kernel_size: 3 stride: 2 group: 3 bias_term: false", w(3, 1, 3, 3)),
    "inner product": one("InnerProduct", "inner_product", "num_output: 5", w(5, 216), w(5)),
    "inner product, transposed": one(
        "InnerProduct", "inner_product",
        "num_output: 5 transpose: true axis: 2 bias_term: false", w(72, 5)),
    "max pooling beyond the end": one("Pooling", "pooling", "pool: MAX kernel_size: 3 stride: 2"),
    "mean pooling beyond the end": one(
        "Pooling", "pooling", "pool: AVE kernel_size: 3 stride: 2 pad: 1"),
    "pooling within": one(
        "Pooling", "pooling", "pool: MAX kernel_size: 2 stride: 2 ceil_mode: false"),
    "global max": one("Pooling", "pooling", "pool: MAX global_pooling: true"),
    "global mean": one("Pooling", "pooling", "pool: AVE global_pooling: true"),
    "lrn": one("LRN", "lrn", "local_size: 3 alpha: 0.5 beta: 0.6"),
    "lrn within": one("LRN", "lrn", "local_size: 3 alpha: 0.5 norm_region: WITHIN_CHANNEL"),
    "batch norm": one("BatchNorm", "batch_norm", "eps: 0.01", w(3), np.abs(w(3)) + 1, [0.5]),
    "batch norm and scale": (
        layer("BatchNorm", top="x2")
        + layer("Scale", "scale_param { bias_term: true }", "x2", "x2", "s")
        + layer("ReLU", bottom="x2", top="x2", name="r"),
        {"l": [w(3), np.abs(w(3)) + 1, [2.0]], "s": [w(3), w(3)]}, ONE,
    ),
    "bn": one("BN", "", "", w(1, 3, 1, 1), w(1, 3, 1, 1), w(3), np.abs(w(3)) + 1),
    "scale": one("Scale", "", "", w(3)),
    "scale by another": (
        layer("Scale", "scale_param { axis: 0 }", "x y"), {}, ((2, 3, 9, 8), (2, 3)),
    ),
    "scale from the first axis": one(
        "Scale", "scale", "axis: 2 num_axes: 2 bias_term: true", w(9, 8), w(9, 8)),
    "bias": one("Bias", "", "", w(3)),
    "prelu": one("PReLU", "", "", w(3)),
    "prelu of all": one("PReLU", "prelu", "channel_shared: true", w(1)),
    "elu": one("ELU"),
    "relu": one("ReLU"),
    "leaky relu": one("ReLU", "relu", "negative_slope: 0.1"),
    "relu6": one("ReLU6"),
    "clip": one("Clip", "clip", "min: -0.5 max: 0.25"),
    "swish": one("Swish"),
    "sigmoid": one("Sigmoid"),
    "tanh": one("TanH"),
    "absolute value": one("AbsVal"),
    "bnll": one("BNLL"),
    "power": one("Power", "power", "power: 2 scale: 0.5 shift: 3"),
    "power alone": one("Power", "power", "scale: -0.5"),
    "exp": one("Exp", "exp", "base: 2 scale: 0.5 shift: 1"),
    "log": (
        layer("AbsVal", top="a") + layer("Log", "log_param { base: 2 shift: 1 }", "a", name="g"),
        {}, ONE,
    ),
    "threshold": one("Threshold", "threshold", "threshold: 0.3"),
    "dropout": (layer("Dropout") + layer("ReLU", bottom="out", top="r", name="r"), {}, ONE),
    "sum": (layer("Eltwise", bottom="x y"), {}, TWO),
    "sum with coefficients": (
        layer("Eltwise", "eltwise_param { operation: SUM coeff: 1 coeff: -0.5 }", "x y"), {}, TWO,
    ),
    "product": (layer("Eltwise", "eltwise_param { operation: PROD }", "x y"), {}, TWO),
    "maximum": (layer("Eltwise", "eltwise_param { operation: MAX }", "x y"), {}, TWO),
    "concat": (layer("Concat", bottom="x y"), {}, TWO),
    "concat of rows": (layer("Concat", "concat_param { axis: 2 }", "x y"), {}, TWO),
    "slice": (
        layer("Slice", "slice_param { axis: 2 slice_point: 2 slice_point: 5 }", top="a b c")
        + layer("Concat", "concat_param { axis: 2 }", "c a b", name="c"), {}, ONE,
    ),
    "slice into equal parts": (
        layer("Slice", "", top="a b c") + layer("Eltwise", "", "a b c", name="e"), {}, ONE,
    ),
    "split": (
        layer("Split", top="a b") + layer("Eltwise", "", "a b", name="e"), {}, ONE,
    ),
    "flatten": one("Flatten"),
    "flatten in the middle": one("Flatten", "flatten", "axis: 1 end_axis: 2"),
    "reshape": one("Reshape", "reshape", "shape { dim: 0 dim: -1 dim: 4 }"),
    "reshape of some axes": one(
        "Reshape", "reshape", "shape { dim: 12 dim: -1 } axis: 2 num_axes: 2"),
    "permute": one("Permute", "permute", "order: 0 order: 2 order: 3 order: 1"),
    "normalize": one("Normalize", "norm", "across_spatial: false channel_shared: false", w(3)),
    "normalize all": one("Normalize", "norm", "across_spatial: true channel_shared: true", w(1)),
    "softmax": one("Softmax"),
    "softmax of rows": one("Softmax", "softmax", "axis: 2"),
    "crop": (
        layer("Crop", "crop_param { axis: 2 offset: 1 offset: 2 }", "x y"), {},
        ((2, 3, 9, 8), (2, 3, 4, 5)),
    ),
    "mvn": one("MVN"),
    "mvn across channels": one("MVN", "mvn", "across_channels: true"),
    "mean alone": one("MVN", "mvn", "normalize_variance: false"),
    "interp": one("Interp", "interp", "height: 17 width: 15"),
    "shuffle": one("ShuffleChannel", "shuffle_channel", "group: 2", shapes=((2, 6, 3, 4),)),
    "prior boxes": (
        layer("PriorBox", "prior_box_param { min_size: 3 max_size: 5 aspect_ratio: 2 flip: true "
              "clip: true variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2 offset: 0.5 }",
              "x y"), {}, ((1, 3, 3, 4), (1, 3, 9, 8)),
    ),
    "prior boxes of steps": (
        layer("PriorBox", "prior_box_param { min_size: 3 aspect_ratio: 2 aspect_ratio: 3 flip: "
              "false step: 2 }", "x y"), {}, ((1, 3, 3, 4), (1, 3, 9, 8)),
    ),
}  # fmt: skip


def shaped(array):
    return np.reshape(array, (-1, 1, 1))


#: Caffe's formulas of layers that OpenCV lacks or whose settings it ignores.
FORMULAS = {
    "absolute value": lambda x, _: np.abs(x),
    "bias": lambda x, v: x + shaped(v[0]),
    "bn": lambda x, v: v[0] * (x - shaped(v[2])) / np.sqrt(shaped(v[3]) + 1e-5) + v[1],
    "threshold": lambda x, _: x > 0.3,
    "clip": lambda x, _: np.clip(x, -0.5, 0.25),
    "log": lambda x, _: np.log2(np.abs(x) + 1),
    "inner product, transposed": lambda x, v: x.reshape(2, 3, 72) @ v[0],
    "depthwise": lambda x, v: np.stack(
        [
            [[(x[n, c, i:i + 3, j:j + 3] * v[0][c, 0]).sum() + v[1][c] for j in range(6)]
             for i in range(7)]
            for n in range(2) for c in range(3)
        ]
    ).reshape(2, 3, 7, 6),
    "argmax": lambda x, _: x.reshape(2, -1).argmax(1).reshape(2, 1, 1),
    "argmax of channels": lambda x, _: x.argmax(1)[:, None],
    "sum of all": lambda x, _: 2 * x.sum((1, 2, 3)),
    "sum of squares": lambda x, _: (x**2).sum((2, 3)),
    "tiles": lambda x, _: np.tile(x, (1, 1, 3, 1)),
    "upsample": lambda x, _: x.repeat(2, 2).repeat(2, 3),
    "embed": lambda x, v: v[0][np.abs(x).astype(int)] + v[1],
    "lrn with k": lambda x, _: x * (2 + x**2 * 0.5) ** -0.75,
    "prior boxes of steps": lambda x, _: priors(),
}  # fmt: skip
CASES |= {
    "argmax": one("ArgMax"),
    "argmax of channels": one("ArgMax", "argmax", "axis: 1"),
    "sum of all": one("Reduction", "reduction", "axis: 1 coeff: 2"),
    "sum of squares": one("Reduction", "reduction", "axis: 2 operation: SUMSQ"),
    "tiles": one("Tile", "tile", "axis: 2 tiles: 3"),
    "upsample": one("Upsample", "upsample", "scale: 2"),
    "embed": (
        layer("AbsVal", top="a") + layer("Embed", "embed_param { num_output: 2 }", "a", name="e"),
        {"e": [w(9, 2), w(2)]}, ((2, 3),),
    ),
    "lrn with k": one("LRN", "lrn", "local_size: 1 alpha: 0.5 k: 2"),
}  # fmt: skip


def priors():
    """Boxes of 3 pixels, and of two ratios, every 2 pixels of an image of 9 rows and 8 columns."""
    boxes = []
    for y in range(3):
        for x in range(4):
            for ratio in (1, 2, 3):
                wide, high = 1.5 * ratio**0.5, 1.5 / ratio**0.5
                cx, cy = (x + 0.5) * 2, (y + 0.5) * 2
                boxes += [(cx - wide) / 8, (cy - high) / 9, (cx + wide) / 8, (cy + high) / 9]
    return np.stack([boxes, np.full(len(boxes), 0.1)])[None]


def inputs(shapes):
    return [normal(*shape).astype("f4") for shape in shapes]


@pytest.mark.parametrize("name", sorted(CASES.keys() - FORMULAS.keys()))
def test_numbers_of_opencv(name):
    reader = opencv("Caffe")
    text, weights, shapes = CASES[name]
    text, arrays = network(text, shapes), inputs(shapes)
    net = reader(
        np.frombuffer(text.encode(), np.uint8), np.frombuffer(caffemodel(weights), np.uint8)
    )
    for key, array in zip("xyz", arrays, strict=False):
        net.setInput(array, key)
    result = graph(text, weights)(*arrays).data
    np.testing.assert_allclose(result, net.forward().reshape(result.shape), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", FORMULAS)
def test_numbers_of_the_formula(name):
    text, weights, shapes = CASES[name]
    arrays = inputs(shapes)
    result = graph(network(text, shapes), weights)(*arrays).data
    right = FORMULAS[name](arrays[0], next(iter(weights.values()), None))
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, right, atol=1e-5, rtol=1e-5)


def test_every_layer_has_a_case():
    cases = " ".join(text for text, *_ in CASES.values())
    missing = {kind for kind in TABLE if f'type: "{kind}"' not in cases}
    assert missing == {"ConvolutionDepthwise", "DetectionOutput"}  # an alias; other tests


@pytest.mark.parametrize("name", ["convolution", "batch norm and scale", "inner product", "scale"])
def test_the_first_version_is_read(name):
    text, weights, shapes = CASES[name]
    new, arrays = network(text, shapes), inputs(shapes)
    dims = " ".join(f"input_dim: {n}" for n in shapes[0])
    old = f'input: "x" {dims} ' + text.replace("layer {", "layers {").replace(
        'type: "Convolution"', "type: CONVOLUTION").replace(
        'type: "InnerProduct"', "type: INNER_PRODUCT").replace(
        'type: "BatchNorm"', "type: BATCH_NORM").replace(
        'type: "Scale"', "type: SCALE").replace('type: "ReLU"', "type: RELU")  # fmt: skip
    np.testing.assert_array_equal(
        graph(old, weights, old=True)(*arrays).data, graph(new, weights)(*arrays).data
    )


def test_channels_last():
    text, weights, shapes = CASES["convolution"]
    (x,) = inputs(shapes)
    right = graph(network(text, shapes), weights)(x).data
    last = graph(network(text, shapes), weights, channels_last=True)
    assert last.inputs[0][2] == (None, None, None, 3)
    np.testing.assert_array_equal(last(x.transpose(0, 2, 3, 1)).data, right.transpose(0, 2, 3, 1))


def test_weights_are_parameters_and_statistics_buffers():
    net = graph(network(CASES["batch norm and scale"][0]), CASES["batch norm and scale"][1])
    kinds = {name: type(tensor).__name__ for name, tensor in net.held()}
    assert kinds == {"s.weight": "Parameter", "s.bias": "Parameter",
                     "l.running_mean": "Buffer", "l.running_variance": "Buffer"}  # fmt: skip
    assert len(net.nodes) == 2, "Scale is part of the normalisation"


def test_scale_stays_separate_if_other_layers_read_the_batch_norm():
    text = layer("BatchNorm", top="b") + layer("Scale", "", "b", "s", "s") + layer(
        "Eltwise", "", "b s", name="e")  # fmt: skip
    weights = {"l": [w(3), np.abs(w(3)) + 1, [1.0]], "s": [w(3)]}
    (x,) = inputs(ONE)
    mean, variance, _ = map(shaped, weights["l"])
    b = (x - mean) / np.sqrt(variance + 1e-5)
    result = graph(network(text), weights)(x).data
    np.testing.assert_allclose(result, b + b * shaped(weights["s"][0]), atol=1e-5)


def test_layers_of_training_and_labels_are_left_out():
    text = """
    layer { name: "d" type: "Data" top: "data" top: "label" include { phase: TEST }
            transform_param { crop_size: 5 } }
    layer { name: "d" type: "Data" top: "data" top: "label" include { phase: TRAIN } }
    layer { name: "r" type: "ReLU" bottom: "data" top: "data" }
    layer { name: "n" type: "DummyData" top: "n" include: { phase: TRAIN } }
    layer { name: "a" type: "Accuracy" bottom: "data" bottom: "label" top: "a" }
    layer { name: "s" type: "SoftmaxWithLoss" bottom: "data" bottom: "label" top: "loss" }
    """
    net = graph(text)
    assert net.inputs == (("data", "float32", (None, 3, None, None)),)
    assert len(net.outputs) == 1
    x = normal(1, 3, 4, 4).astype("f4")
    np.testing.assert_array_equal(net(x).data, np.maximum(x, 0))


def test_weights_in_common_are_one_parameter():
    shared = 'param { name: "w" } param { name: "b" } inner_product_param { num_output: 4 }'
    text = layer("InnerProduct", shared, "x", "a", "one") + layer(
        "InnerProduct", shared, "a", "b", "two")  # fmt: skip
    weights = {"one": [w(4, 4), w(4)], "two": [w(4, 4), w(4)]}
    net = graph(network(text, ((2, 4),)), weights)
    assert {name for name, _ in net.held()} == {"one.weight", "one.bias"}


@pytest.mark.slow
def test_gradients_reach_all_weights():
    text = "".join(
        [
            CASES["convolution"][0],
            layer("BatchNorm", "", "out", "o2", "n"),
            layer("Scale", "", "o2", "o2", "s"),
            layer("Pooling", "pooling_param { kernel_size: 2 }", "o2", "o3", "p"),
            layer("InnerProduct", "inner_product_param { num_output: 2 }", "o3", "o4", "i"),
        ]
    )
    weights = {"l": [w(4, 3, 3, 3), w(4)], "n": [w(4), np.abs(w(4)) + 1, [1.0]], "s": [w(4)],
               "i": [w(2, 48), w(2)]}  # fmt: skip
    net = graph(network(text), weights).train()
    net(inputs(ONE)[0]).sum().backward()
    reached = {n for n, p in net.held() if isinstance(p, Parameter) and np.abs(p.grad).max() > 0}
    assert reached >= {"l.weight", "s.weight", "i.weight", "i.bias"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (layer("Python"), "layers that are not supported: Python \\(layer 'l'\\)"),
        (layer("ReLU", bottom="none"), "layer 'l': nothing computes 'none'"),
        (layer("Convolution", "convolution_param { num_output: 4 }"), "expected its weights"),
        (layer("Concat", "concat_param { axis: 7 }"), "expected an axis of 4, found 7"),
        (layer("Pooling", "pooling_param { pool: STOCHASTIC kernel_size: 2 }"), "STOCHASTIC"),
        (layer("Slice", "slice_param { slice_point: 4 slice_point: 2 }", top="a b c"), "that rise"),
        (layer("Pooling", "pooling_param { kernel_size: 99999999 }"), "a whole number from 1 to"),
        (layer("Scale", "", "y"), "nothing computes 'y'"),
        (layer("ReLU", top="a b"), "expected 1 tops, found 2"),
        (layer("ArgMax", "argmax_param { out_max_val: true }"), "values of maxima"),
        (layer("ArgMax", "argmax_param { top_k: 2 }"), "values of maxima"),
        ("", "no layer computes anything"),
        ('layers { layer { name: "c" type: "conv" } }', "Caffe's version 0"),
    ],
)
def test_unsupported_networks_are_refused(text, sentence):
    with pytest.raises(ModelFileError, match=sentence):
        graph(text if text.startswith("layers") else network(text))
