"""Protobuf's text format: every kind of value is read, and invalid text is refused."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import ModelFileError
from daskdl.interop.caffe.files import Message, parse, read_blobs
from tests.daskdl.interop.caffe.files import caffemodel, field, graph, layer, network, varint
from tests.daskdl.interop.caffe.test_layers import ONE, inputs, w

EVERYTHING = """
# a comment
name: "a # no comment" 'and more\\n' layer { kind: MAX; size: 3, size: 4 }
layer: < flag: true, list: [1, 2.5, -3e-2] word: "x\\"y" hex: 0x1F f: .5f >
"""


def test_every_kind_of_value_is_read():
    top = parse(EVERYTHING, "n")
    assert top.word("name") == "a # no commentand more\n"
    one, two = top.parts("layer")
    assert one.word("kind") == "MAX"
    assert one.integers("size") == [3, 4]
    assert two.flag("flag", False)
    assert two.numbers("list") == [1, 2.5, -0.03]
    assert two.word("word") == 'x"y'
    assert two.integer("hex") == 31
    assert two.number("f") == 0.5
    assert isinstance(top.part("none"), Message)
    assert top.integer("none", 7) == 7


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("layer {", "ends within"),
        ("layer }", "line 1: expected ':' or '{' behind a name, found 'layer'"),
        ("\n\na: {} 5", "line 3: expected the name of a field, found '5'"),
        ("a: ", "expected a value, found 'the end of the file'"),
        ('a: "never ends', "expected a name, number, text or mark"),
        ("a: \x01", "expected a name, number, text or mark"),
        ("a" + "{a" * 40, "nested deeper than 30 times"),
        ("a: [" + "1," * 200_000, "at most 100000 values"),
        ("a:1 " * 200_000, "more than 100000 fields"),
    ],
)
def test_invalid_text(text, sentence):
    with pytest.raises(ModelFileError, match=sentence):
        parse(text, "n")


def test_values_of_the_wrong_kind():
    top = parse("a: 1.5 b: word c { } d: 99999999999999999999 e: nan f: -1", "n")
    for call, sentence in (
        (lambda: top.integer("a"), "a: expected a whole number from 0 to 1048576, found 1.5"),
        (lambda: top.number("b"), "b: expected a number, found 'word'"),
        (lambda: top.flag("b", True), "b: expected true or false, found 'word'"),
        (lambda: top.word("c"), "c: expected text, found { ... }"),
        (lambda: top.part("b"), "b: expected { ... }, found 'word'"),
        (lambda: top.integer("d"), "d: expected a whole number"),
        (lambda: top.number("e"), "e: expected a number, found nan"),
        (lambda: top.integer("f"), "f: expected a whole number"),
    ):
        with pytest.raises(ModelFileError, match=sentence):
            call()


TEXT = network(
    layer("Convolution", "convolution_param { num_output: 4 kernel_size: 3 }", top="c")
    + layer("BatchNorm", bottom="c", top="b", name="n")
    + layer("Scale", "scale_param { bias_term: true }", "b", "b", "s")
    + layer("Pooling", "pooling_param { kernel_size: 3 stride: 2 }", "b", "p", "p")
    + layer("InnerProduct", "inner_product_param { num_output: 2 }", "p", "i", "i")
    + layer("Softmax", "", "i", "y", "y")
)
WEIGHTS = caffemodel(
    {"l": [np.ones((4, 3, 3, 3)), np.ones(4)], "n": [np.ones(4), np.ones(4), [1.0]],
     "s": [np.ones(4), np.ones(4)], "i": [np.ones((2, 36)), np.ones(2)]}
)  # fmt: skip


def test_lengths_beyond_the_file():
    with pytest.raises(ModelFileError, match="a part of 1000000 bytes goes beyond the 3 that are"):
        read_blobs(varint(100 << 3 | 2) + varint(1_000_000) + b"abc", "m")


@pytest.mark.parametrize("shape", [[1 << 40, 1 << 40], [-1, 4], [1 << 31], [1] * 40])
def test_shapes_that_do_not_fit_the_bytes(shape):
    blob = field(7, field(1, b"".join(map(varint, shape)))) + field(5, b"\0" * 16)
    with pytest.raises(ModelFileError, match=r"layer 'l': expected .* numbers for a blob"):
        read_blobs(field(100, field(1, b"l") + field(7, blob)), "m")


def test_unpacked_numbers_are_refused():
    blob = b"\x2d\0\0\0\0" * 3
    with pytest.raises(ModelFileError, match="numbers one by one"):
        read_blobs(field(100, field(1, b"l") + field(7, blob)), "m")


def test_layers_may_have_names_of_attributes():
    net = graph(
        network(layer("Bias", name="forward") + layer("Bias", "", "out", "y", "_run")),
        {"forward": [np.ones(3)], "_run": [np.ones(3)]},
    )
    assert net(np.zeros((1, 3, 2, 2), "f4")).data.min() == 2


@pytest.mark.parametrize(("kind", "settings", "message"), [
    ("BatchNorm", "batch_norm_param { use_global_stats: false }", "use_global_stats: expected tr"),
    ("BatchNorm", "batch_norm_param { renorm: true }", "renorm: not known"),
    ("BN", "bn_param { bn_mode: LEARN }", "bn_mode: expected INFERENCE"),
    ("ReLU", "relu_param { engine: CAFFE upper: 6 }", "upper: not known"),
    ("ReLU", "gain: 3", "gain: not known"),
    ("Pooling", "pooling_param { pool: MAX kernel_size: 2 dilation: 2 }", "dilation: not known"),
    ("LRN", "lrn_param { norm_across: 3 }", "norm_across: not known"),
    ("Convolution", "convolution_param { num_output: 4 kernel_size: 5 }", r"kernels \[5, 5\]"),
    ("Convolution", "convolution_param { num_output: 4 pad: 1 pad_h: 2 }", "pad: not known"),
])  # fmt: skip
def test_unknown_settings_are_refused(kind, settings, message):
    weights = {"BatchNorm": [w(3), np.abs(w(3)) + 1, [0.5]], "Convolution": [w(4, 3, 3, 3), w(4)]}
    weights["BN"] = [w(1, 3, 1, 1), w(1, 3, 1, 1), w(3), np.abs(w(3)) + 1]
    with pytest.raises(ModelFileError, match=message):
        graph(network(layer(kind, settings)), {"l": weights.get(kind, [])})


def test_layers_of_other_levels_are_left_out():
    text = network(layer("ReLU") + layer("Exp", "include { min_level: 1 }", "y", "y", "e"))
    (x,) = inputs(ONE)
    np.testing.assert_array_equal(graph(text)(x).data, np.maximum(x, 0))
