"""Values of Torch7's files are read as they are; damaged and hostile files are refused."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from daskdl.errors import ModelFileError
from daskdl.interop.torch7 import read
from daskdl.interop.torch7.modules import graph_of
from daskdl.interop.torch7.reader import Object, from_bytes
from tests.daskdl.interop.torch7.files import Made, Size, container, nn, t7
from tests.daskdl.interop.torch7.test_modules import conv, norm, pool, w

VALUES = {
    "number": 2.5, "whole": 3, "yes": True, "none": "text", "list": [1, 2, 3],
    "tensor": np.arange(6.0).reshape(2, 3), "floats": np.arange(4, dtype="f4"),
    "bytes": np.arange(3, dtype="u1"), "object": Made("a.Class", x=1), "storage": Size(4, 5),
}  # fmt: skip
LAYERS = (
    conv(), norm(count=4), nn("ReLU"), pool("SpatialMaxPooling"), nn("View", size=Size(80)),
    nn("Linear", weight=w(2, 80), bias=w(2)),
)  # fmt: skip
NETWORK = t7(container("Sequential", *LAYERS))


def test_values_of_all_kinds(tmp_path):
    (tmp_path / "v.t7").write_bytes(t7(VALUES))
    values = read(tmp_path / "v.t7")
    assert values["number"] == 2.5
    assert type(values["whole"]) is int
    assert values["yes"] is True
    assert values["list"] == {1: 1, 2: 2, 3: 3}
    for name in ("tensor", "floats", "bytes"):
        np.testing.assert_array_equal(values[name], VALUES[name])
        assert values[name].dtype == VALUES[name].dtype
    assert isinstance(values["object"], Object)
    assert values["object"].fields == {"x": 1}
    assert list(values["storage"]) == [4, 5]


def test_views_of_tensors():
    turned = np.asfortranarray(w(3, 4))
    np.testing.assert_array_equal(from_bytes(t7(turned), "v"), turned)


def test_a_repeated_value_is_one_object():
    inner, loop = {"a": 1}, {}
    pair = from_bytes(t7([inner, inner]), "v")
    assert pair[1] is pair[2]
    loop["self"] = loop
    table = from_bytes(t7(loop), "v")
    assert table["self"] is table


@pytest.mark.slow
def test_values_that_lie_very_deep():
    depth = 50_000  # of tables, each the only value of the one before
    parts = [struct.pack("<iiiid", 3, i, 1, 1, 1.0) for i in range(1, depth)]
    value = from_bytes(b"".join(parts) + struct.pack("<id", 1, 7.0), "v")
    for _ in range(depth - 1):
        value = value[1]
    assert value == 7


def test_functions_are_refused():
    for kind in (6, 7, 8):
        data = struct.pack("<iiiid", 3, 1, 1, 1, 1.0) + struct.pack("<iii", kind, 2, 10) + b"x" * 10
        with pytest.raises(ModelFileError, match="it has a function in it, which is a program"):
            from_bytes(data, "v")


def tensor(sizes, strides, first=1, count=4):
    head = struct.pack("<ii", 4, 1) + struct.pack("<i", 3) + b"V 1"
    head += struct.pack("<i", 17) + b"torch.FloatTensor"
    head += struct.pack(f"<i{len(sizes)}q{len(sizes)}qq", len(sizes), *sizes, *strides, first)
    storage = struct.pack("<ii", 4, 2) + struct.pack("<i", 3) + b"V 1"
    storage += struct.pack("<i", 18) + b"torch.FloatStorage" + struct.pack("<q", count)
    return head + storage + b"\0" * 16


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (tensor([4], [1], count=1 << 40), "goes beyond the 16 that are left"),
        (tensor([4], [1], count=-1), "goes beyond the 16 that are left"),
        (tensor([5], [1]), "goes beyond its 4 numbers"),
        (tensor([2, 2], [1, 3]), "goes beyond its 4 numbers"),
        (tensor([2], [-1]), "goes beyond its 4 numbers"),
        (tensor([1 << 40], [0]), "goes beyond its 4 numbers"),
        (tensor([2], [1], first=0), "goes beyond its 4 numbers"),
        (tensor([2], [1], first=4), "goes beyond its 4 numbers"),
        (tensor([1 << 62, 1 << 62], [0, 0]), "goes beyond its 4 numbers"),
        (struct.pack("<iii", 2, 1 << 30, 0), "a text of 1073741824 bytes goes beyond the 4"),
        (struct.pack("<iii", 3, 1, 1 << 30), "a table of 1073741824 pairs goes beyond"),
        (struct.pack("<iii", 4, 1, -5), "a text of -5 bytes"),
        (struct.pack("<i", 99), "a value of unknown kind 99"),
        (b"", "the file ends within a number"),
        (b"4\n1\n", "a value of unknown kind"),
        (struct.pack("<iii", 3, 1, 1 << 17) + struct.pack("<ii", 5, 0) * (1 << 18),
         "expected up to 200000 values"),
    ],
)  # fmt: skip
def test_damaged_values(data, sentence):
    with pytest.raises(ModelFileError, match=sentence):
        from_bytes(data, "v")


def test_modules_within_themselves():
    inside = container("Sequential")
    inside.fields["modules"] = [inside, inside]
    with pytest.raises(ModelFileError, match="modules lie in each other deeper than 60 times"):
        graph_of(t7(inside), "n")


def test_the_numbers_of_another_reader(tmp_path):
    torchfile = pytest.importorskip("torchfile")
    (tmp_path / "v.t7").write_bytes(NETWORK)
    ours, theirs = read(tmp_path / "v.t7"), torchfile.load(tmp_path / "v.t7")
    for i, module in enumerate(theirs.modules):
        fields = ours.fields["modules"][i + 1].fields
        assert len(fields) == len(module._obj)
        for key, value in module._obj.items() if fields else ():
            np.testing.assert_array_equal(fields[key.decode()], value)
