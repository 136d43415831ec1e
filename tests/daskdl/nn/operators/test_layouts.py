"""Images stay channels last in memory from one operator to the next: views, no copies."""

from __future__ import annotations

import numpy as np
import pytest

from daskdl import nn
from daskdl.nn.inference.program import memory_order
from daskdl.nn.operators.table import elementwise
from tests.daskdl.gradients import normal


def lies_channels_last(value):
    return value.data.transpose(0, 2, 3, 1).flags.c_contiguous


def graph(*nodes, parameters=(), outputs=("y",)):
    return nn.Graph(nodes, [("x", "float32", None)], outputs, parameters)


@pytest.mark.parametrize(
    "node",
    [
        ("Relu", ("x",), ("y",)),
        ("Mul", ("x", "x"), ("y",)),
        ("Clip", ("x",), ("y",), (("min", 0.0), ("max", 6.0))),
        ("MaxPool", ("x",), ("y",), (("kernel_shape", (2, 2)), ("strides", (2, 2)))),
        ("Concat", ("x", "x"), ("y",), (("axis", 1),)),
    ],
    ids=lambda node: node[0],
)
def test_a_view_comes_out_of_a_view(node):
    x = normal(2, 6, 4, 3).astype("f4").transpose(0, 3, 1, 2)  # lies (N, H, W, C)
    y = nn.Graph([node], [("x", "float32", None)], ["y"], opset=6)(x)
    assert lies_channels_last(y)
    copied = nn.Graph([node], [("x", "float32", None)], ["y"], opset=6)(x.copy())
    np.testing.assert_array_equal(y.data, copied.data)


def test_filters_that_lie_channels_last_are_not_copied():
    model = graph(
        ("Transpose", ("w",), ("w/last",), (("perm", (0, 3, 1, 2)),)),
        ("Conv", ("x", "w/last"), ("y",)),
        parameters=[("w", (4, 3, 3, 3))],
    )
    model.w.data[...] = normal(4, 3, 3, 3)
    x = normal(2, 6, 5, 3).astype("f4")
    y = model(x.transpose(0, 3, 1, 2))
    assert lies_channels_last(y)
    layer = nn.Conv2d(3, 4, 3, bias=False)
    layer.load_state_dict({"weight": model.w.data})
    np.testing.assert_array_equal(y.data.transpose(0, 2, 3, 1), layer(x).data)


def test_the_order_in_memory_is_that_of_the_strides():
    x = normal(2, 3, 4, 5)
    assert memory_order(x) == (0, 1, 2, 3)
    assert memory_order(x.transpose(0, 3, 1, 2)) == (0, 2, 3, 1)
    assert memory_order(x[:, ::2]) is None
    y = elementwise(lambda t: t * 2.0, nn.Parameter(x.T))
    np.testing.assert_allclose(y.data, 2 * x.T.astype("f4"))
