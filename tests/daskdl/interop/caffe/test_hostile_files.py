"""Damaged and hostile files of Caffe: one sentence each time."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import ModelFileError
from daskdl.interop.caffe import caffemodel as weights_of
from daskdl.interop.caffe.reader import read
from tests.daskdl.interop.caffe.files import caffemodel, field, graph, layer, network, varint
from tests.daskdl.interop.hostile import survived

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


def attempt(text, weights):
    net = read(text, weights, "n.prototxt", "n.caffemodel").eval()
    net(*[np.zeros([1, *(n or 9 for n in s[1:])], "f4") for _, _, s in net.inputs])


@pytest.mark.slow
def test_the_file_itself_is_read():
    attempt(TEXT.encode(), WEIGHTS)


@pytest.mark.parametrize("count", [150, pytest.param(1000, marks=pytest.mark.long)])
def test_damaged_weights(count):
    assert len(survived(lambda data: attempt(TEXT.encode(), data), WEIGHTS, count)) > 5


@pytest.mark.parametrize("count", [150, pytest.param(1000, marks=pytest.mark.long)])
def test_damaged_texts(count):
    assert len(survived(lambda data: attempt(data, WEIGHTS), TEXT.encode(), count)) > 20


def test_lengths_beyond_the_file():
    with pytest.raises(ModelFileError, match="a part of 1000000 bytes goes beyond the 3 that are"):
        weights_of.read(varint(100 << 3 | 2) + varint(1_000_000) + b"abc", "m")


@pytest.mark.parametrize("shape", [[1 << 40, 1 << 40], [-1, 4], [1 << 31], [1] * 40])
def test_sizes_that_the_bytes_do_not_bear_out(shape):
    blob = field(7, field(1, b"".join(map(varint, shape)))) + field(5, b"\0" * 16)
    with pytest.raises(ModelFileError, match=r"layer 'l': expected .* numbers for a blob"):
        weights_of.read(field(100, field(1, b"l") + field(7, blob)), "m")


def test_numbers_one_by_one():
    blob = b"\x2d\0\0\0\0" * 3
    with pytest.raises(ModelFileError, match="numbers one by one"):
        weights_of.read(field(100, field(1, b"l") + field(7, blob)), "m")


def test_names_of_attributes_are_no_names_of_weights():
    net = graph(
        network(layer("Bias", name="forward") + layer("Bias", "", "out", "y", "_run")),
        {"forward": [np.ones(3)], "_run": [np.ones(3)]},
    )
    assert net(np.zeros((1, 3, 2, 2), "f4")).data.min() == 2
