"""Damaged and hostile frozen graphs: one sentence each time."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl.errors import ModelFileError
from tests.daskdl.interop.hostile import survived
from tests.daskdl.interop.tensorflow.files import F4, const, field, graph, node, number, shape
from tests.daskdl.interop.tensorflow.test_operators import X, norm, w

DATA = (
    X + norm("x") + const("w", w(3, 3, 3, 4))
    + node("c", "Conv2D", ["y", "w"], T=F4, padding="SAME", strides=[1, 2, 2, 1])
    + node("p", "MaxPool", ["c"], ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID")
    + const("s", np.array([-1, 16], "i4")) + node("r", "Reshape", ["p", "s"], T=F4)
    + const("m", w(16, 2)) + node("d", "MatMul", ["r", "m"], T=F4) + node("o", "Softmax", ["d"])
)  # fmt: skip


def attempt(data):
    net = graph(data)
    net(*[np.zeros([n or 1 for n in s or (2, 9, 8, 3)], d) for _, d, s in net.inputs])


def test_the_file_itself_is_read():
    attempt(DATA)


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.long)])
def test_damaged_files(count):
    assert len(survived(attempt, DATA, count)) > 20


def tensor(lengths, payload=b""):
    held = number(1, 1) + field(2, shape(lengths)) + payload
    value = field(5, field(1, b"value") + field(2, field(8, held)))
    return X + field(1, field(1, b"c") + field(2, b"Const") + value) + node("y", "Add", ["x", "c"])


@pytest.mark.parametrize("lengths", [[1 << 40, 1 << 40], [1 << 34], [-1, 4], [7], [1] * 40])
def test_sizes_that_the_bytes_do_not_bear_out(lengths):
    with pytest.raises(ModelFileError, match="expected"):
        graph(tensor(lengths, field(4, b"\0" * 12)))


def test_one_number_that_stands_for_many():
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
