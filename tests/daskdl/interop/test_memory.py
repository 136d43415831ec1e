"""A hostile file of any format costs at most four times its size and 50 MB of memory."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tests.daskdl.interop.caffe import files as caffe
from tests.daskdl.interop.checks import check_memory
from tests.daskdl.interop.keras import files as keras
from tests.daskdl.interop.keras import test_layers as keras_files
from tests.daskdl.interop.tensorflow import files as tensorflow
from tests.daskdl.interop.tensorflow import test_reader as hostile
from tests.daskdl.interop.torch7 import files as torch7
from tests.daskdl.interop.torch7 import test_reader as torch7_files
from tests.daskdl.interop.torch_weights.test_reader import saved_pickle


def prototxts():
    body = caffe.layer("InnerProduct", "inner_product_param { num_output: 3000 }")
    many = "".join(caffe.layer("ReLU", name=f"r{i}", top="x") for i in range(19_000))
    weights = {"l": [np.zeros((3000, 3000), "f4"), np.zeros(3000, "f4")]}
    field, weightless = caffe.field, caffe.caffemodel({"none": [np.zeros(1)]})
    return {
        "weights": (caffe.network(body), caffe.caffemodel(weights)),
        "layers": (caffe.network(body), field(100, b"") * 1_000_000),
        "blobs": (caffe.network(body), field(100, field(7, b"") * 1_000_000)),
        "messages": ("a{}" * 500_000, weightless),
        "numbers": ("a:1 " * 500_000, weightless),
        "relus": (caffe.network(many), weightless),
    }


def frozen():
    """Frozen graphs: many weights, empty nodes and inputs, numbers of one byte, a long chain."""
    node, const = tensorflow.node, tensorflow.const
    x = tensorflow.placeholder("x", (-1, 3000))
    big = const("w", np.zeros((3000, 3000), "f4")) + node("y", "MatMul", ["x", "w"])
    many = caffe.field(1, b"") * 1_000_000
    inputs = caffe.field(1, caffe.field(3, b"") * 1_000_000)
    ones = hostile.tensor([10_000_000], caffe.field(7, b"\x01" * 10_000_000))
    chain = b"".join(node(f"n{i}", "Relu", [f"n{i - 1}" if i else "x"]) for i in range(24_000))
    return {
        "big.pb": x + big, "many.pb": many, "inputs.pb": inputs, "ones.pb": ones,
        "chain.pb": x + chain,
    }  # fmt: skip


def hdf5():
    """Files of Keras: many weights, and many empty groups."""
    config = keras.sequential([("Dense", {"units": 3000})], (3000,))
    big = {"l0": [np.zeros((3000, 3000), "f4"), np.zeros(3000, "f4")]}
    groups = {f"l{i}": [] for i in range(4000)}
    layers = keras.sequential([("ReLU", {})] * 2500, (3,))
    return {
        "big.h5": keras.h5(config, big), "big.keras": keras.keras(config, big),
        "groups.h5": keras.h5(config, groups), "layers.h5": keras.h5(layers, {}),
    }  # fmt: skip


def lua():
    """Files of Torch7: many weights, and many small values."""
    big = torch7.nn("Linear", weight=np.zeros((3000, 3000), "f4"), bias=np.zeros(3000, "f4"))
    numbers = struct.pack("<iii", 3, 1, 190_000 // 2)
    numbers += b"".join(struct.pack("<idi", 1, i + 0.5, 0) for i in range(190_000 // 2))
    objects = struct.pack("<iii", 3, 1, 60_000) + b"".join(
        struct.pack("<idiii", 1, i, 4, i + 2, 3) + b"a.b" + struct.pack("<i", 0)
        for i in range(60_000)
    )
    return {"big.t7": torch7.t7(big), "numbers.t7": numbers, "objects.t7": objects}


#: Small files by their endings.
SMALL = {
    "pb": hostile.DATA, "h5": keras_files.H5, "keras": keras_files.KERAS,
    "t7": torch7_files.NETWORK,
}  # fmt: skip


@pytest.mark.long
def test_memory_is_at_most_four_times_the_file_and_50_megabytes(tmp_path):
    small, sizes = [tmp_path / "small.prototxt"], {}
    pairs = {"small": (caffe.network(caffe.layer("ReLU")), b""), **prototxts()}
    for name, (text, weights) in pairs.items():
        path = tmp_path / f"{name}.prototxt"
        path.write_text(text)
        path.with_suffix(".caffemodel").write_bytes(weights)
        if name != "small":
            sizes[path] = len(text) + len(weights)
    for ending, data in SMALL.items():
        small.append(tmp_path / f"small.{ending}")
        small[-1].write_bytes(data)
    for name, data in {**frozen(), **hdf5(), **lua()}.items():
        (tmp_path / name).write_bytes(data)
        sizes[tmp_path / name] = len(data)
    check_memory(small, sizes)


def hostile_weights():
    """Return small pickles by name; each would take much memory if it were built."""
    many = b"\x80\x02]("
    return {
        "lists": many + b"]" * 2_000_000 + b"e.",
        "dicts": many + b"}" * 2_000_000 + b"e.",
        "numbers": many + b"K\x01" * 2_000_000 + b"e.",
        "texts": many + b"X\x01\x00\x00\x00a" * 1_000_000 + b"e.",
        "memo": b"\x80\x02]"
        + b"".join(b"r" + i.to_bytes(4, "little") for i in range(800_000))
        + b".",
        "tuples": many + b")" * 2_000_000 + b"e.",
        "deep": b"\x80\x02" + b"]" * 1_000_000 + b"a" * 999_999 + b".",
    }


@pytest.mark.slow
def test_memory_is_at_most_four_times_the_file_and_50_megabytes_of_weights(tmp_path, torch):
    small = tmp_path / "small.pt"
    torch.save({"w": torch.zeros(3)}, small)
    paths = []
    for name, data in hostile_weights().items():
        paths.append(tmp_path / f"{name}.pt")
        saved_pickle(paths[-1], data)
    one = torch.zeros(2_000_000)
    for zipped in (True, False):
        paths.append(tmp_path / f"views{zipped}.pt")
        state = {f"w{i}": one[: 1_000_000 + i] for i in range(200)}
        torch.save(state, paths[-1], _use_new_zipfile_serialization=zipped)
    paths.append(tmp_path / "weights.pt")
    torch.save({"w": torch.zeros(4_000_000)}, paths[-1])
    messages = check_memory([small], {path: path.stat().st_size for path in paths})
    assert messages[str(tmp_path / "weights.pt")] == "read"
