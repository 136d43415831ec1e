"""Damaged and hostile files are refused and take no more memory than their size allows."""

from __future__ import annotations

import os
import tracemalloc

import numpy as np
import pytest
from onnx import TensorProto, helper

from daskdl.errors import ModelFileError
from daskdl.interop.onnx import load
from daskdl.interop.onnx.reader import check_bytes, from_proto, read
from tests.daskdl.interop.caffe.files import field, varint
from tests.daskdl.interop.checks import check_memory
from tests.daskdl.interop.onnx.models import file_of, picture_model


def test_files_cut_short():
    data = picture_model().SerializeToString()
    for part, sentence in ((data[: len(data) // 2], "beyond"), (b"", "no graph")):
        with pytest.raises(ModelFileError, match=sentence):
            read(part, "m.onnx")


def test_lengths_beyond_the_file():
    with pytest.raises(ModelFileError, match="a part of 1000000 bytes goes beyond the 3 that are"):
        read(varint(7 << 3 | 2) + varint(1_000_000) + b"abc", "m")


def test_messages_too_deep_in_each_other():
    data = b""
    for _ in range(500):
        data = field(1, field(5, field(6, data)))  # graph, node, attribute
    with pytest.raises(ModelFileError, match="lie in each other deeper than 60 times"):
        read(field(7, data), "m")


def test_nodes_of_two_bytes_take_hundreds_of_bytes():
    with pytest.raises(ModelFileError, match="would take more than"):
        check_bytes(field(7, b"\x0a\x00" * 2_000_000), "m")


def test_numbers_of_one_byte_take_eight_bytes():
    tensor = field(7, b"\x01" * 20_000_000)
    with pytest.raises(ModelFileError, match="would take more than"):
        check_bytes(field(7, field(5, tensor)), "m")


@pytest.mark.parametrize("dims", [[1 << 40, 1 << 40], [-1, 4], [1 << 31], [1 << 62]])
def test_shapes_that_do_not_fit_the_bytes(dims):
    model = picture_model()
    del model.graph.initializer[0].dims[:]
    model.graph.initializer[0].dims.extend(dims)
    tracemalloc.start()
    try:
        with pytest.raises(ModelFileError, match=r"tensor 'conv.weight'|expected lengths"):
            from_proto(model, "m")
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_nothing_of_a_file_is_run_or_written(tmp_path, monkeypatch):
    (tmp_path / "m.onnx").write_bytes(picture_model().SerializeToString())
    monkeypatch.chdir(tmp_path)
    load(tmp_path / "m.onnx")
    assert os.listdir(tmp_path) == ["m.onnx"]


def hostile(kind):
    if kind == "integers":
        return field(7, field(5, field(7, b"\x01" * 10_000_000)))
    if kind == "nodes":
        return field(7, b"\x0a\x00" * 5_000_000)
    if kind == "weights":
        nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
        parts = nodes, {"x": [None, 3000]}, ["y"], {"w": np.zeros((3000, 8000), "f4")}
    else:
        one = helper.make_tensor("v", TensorProto.FLOAT, [1], [1.0])
        nodes = [helper.make_node("ConstantOfShape", ["n"], ["y"], value=one)]
        parts = nodes, {}, ["y"], {"n": np.array([100_000, 100_000])}
    return file_of(*parts).SerializeToString()


@pytest.mark.slow
def test_memory_is_at_most_four_times_the_file_and_50_megabytes(tmp_path):
    (tmp_path / "small.onnx").write_bytes(picture_model().SerializeToString())
    sizes = {}
    for kind in ("weights", "integers", "nodes", "constants"):
        sizes[tmp_path / f"{kind}.onnx"] = (tmp_path / f"{kind}.onnx").write_bytes(hostile(kind))
    check_memory([tmp_path / "small.onnx"], sizes)
