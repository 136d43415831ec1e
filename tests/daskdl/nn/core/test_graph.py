"""Graphs of operators: trained, frozen, cut, saved, and refused if they are inconsistent."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import daskdl
from daskdl import SampleSet, Trainer, nn, ops
from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.core.graph import Graph
from daskdl.nn.core.nodes import packed, unpacked
from daskdl.optim import SGD
from tests.daskdl.gradients import normal


def classifier(seed=0):
    """Return a graph of two layers with a ReLU between them, after a constant factor."""
    graph = Graph(
        [
            ("Mul", ("x", "factor"), ("scaled",)),
            ("Gemm", ("scaled", "w1", "b1"), ("h",), (("transB", 1),)),
            ("Relu", ("h",), ("features",)),
            ("MatMul", ("features", "w2"), ("logits",)),
        ],
        inputs=[("x", "float32", (None, 4))],
        outputs=["logits"],
        parameters=[("w1", (8, 4)), ("b1", (8,)), ("w2", (8, 3))],
        constants=[("factor", "float32", (), (2.0,))],
    )
    rng = np.random.default_rng(seed)
    graph.load_flat(rng.normal(size=graph.flat.size).astype("f4"))
    return graph


def expected(graph, x):
    w1, b1, w2 = (p.data for p in (graph.w1, graph.b1, graph.w2))
    return np.maximum(2 * x @ w1.T + b1, 0) @ w2


def test_forward_and_gradients_are_those_of_the_operations():
    graph, x = classifier(), normal(5, 4).astype("f4")
    y = graph(x)
    np.testing.assert_allclose(y.data, expected(graph, x), rtol=1e-5, atol=1e-5)
    ops.sum(y).backward()
    hidden = ops.relu(ops.linear(2 * x, graph.w1, graph.b1))
    right = np.outer(hidden.data.sum(0), np.ones(3))
    np.testing.assert_allclose(graph.w2.grad, right, rtol=1e-5, atol=1e-5)


def test_a_graph_is_trained_frozen_and_saved(tmp_path):
    graph = classifier()
    x = normal(60, 4).astype("f4")
    labels = (x[:, 0] > 0).astype("i8")
    samples = SampleSet.from_arrays(x=x, y=labels, partitions=2)
    frozen = graph.w1.data.copy()
    graph.freeze("w1")
    trainer = Trainer(graph, nn.CrossEntropyLoss(), SGD(0.1), seed=0)
    history = trainer.fit(samples, epochs=3, batch_size=20, progress=False)
    losses = history["loss"]
    assert losses[-1] < losses[0]
    np.testing.assert_array_equal(graph.w1.data, frozen)
    path = tmp_path / "graph.safetensors"
    daskdl.save(graph, path)
    again = daskdl.load(path)
    assert isinstance(again, Graph)
    np.testing.assert_array_equal(again.predict(x), graph.predict(x))
    assert again.nodes == graph.nodes


def test_a_new_head_takes_the_place_of_the_old():
    graph = classifier()
    trunk = graph.until("features")
    assert sorted(name for name, _ in trunk.named_parameters()) == ["b1", "w1"]
    model = nn.Sequential(trunk, nn.Linear(8, 2, seed=0))
    x = normal(5, 4).astype("f4")
    assert model(x).shape == (5, 2)
    np.testing.assert_allclose(
        model[0](x).data @ graph.w2.data, graph(x).data, rtol=1e-5, atol=1e-6
    )
    with pytest.raises(SettingsError, match="expected a result of a node, such as 'logits', found"):
        graph.until("nothing")


@pytest.mark.slow
def test_a_graph_predicts_on_a_cluster(client_of):
    graph, x = classifier(), normal(20, 4).astype("f4")
    client = client_of(2)
    with client.as_current():
        import dask.array as da

        lazy = graph.predict(da.from_array(x, chunks=(5, 4)))
        np.testing.assert_allclose(client.compute(lazy).result(), graph.predict(x), rtol=1e-6)


def test_bodies_see_the_names_around_them(tmp_path):
    body = (
        "graph",
        ("i", "going", "state"),
        ("on", "new"),
        (
            ("Identity", ("going",), ("on",)),
            ("Mul", ("state", "w"), ("new",)),
        ),
    )
    graph = Graph(
        [("Loop", ("steps", "", "x"), ("y",), (("body", body),))],
        inputs=[("x", "float32", (None,))],
        outputs=["y"],
        parameters=[("w", (3,))],
        constants=[("steps", "int64", (), (4,))],
    )
    graph.w.data[...] = [1, 2, 3]
    daskdl.save(graph, tmp_path / "loop.safetensors")
    again = daskdl.load(tmp_path / "loop.safetensors")
    x = np.ones(3, "f4")
    y = again(x)
    np.testing.assert_array_equal(y.data, [1, 16, 81])
    ops.sum(y).backward()
    np.testing.assert_allclose(again.w.grad, 4 * np.array([1, 2, 3.0]) ** 3)


@pytest.mark.parametrize("dtype", ["int64", "float64", "bool", "uint8"])
def test_constants_are_plain_data(dtype):
    for shape in ((3,), (10, 20)):
        value = np.random.default_rng(0).integers(0, 2, shape).astype(dtype)
        again = unpacked(*packed(value))
        assert again.dtype == value.dtype
        np.testing.assert_array_equal(again, value)


def test_inconsistent_graphs_are_refused():
    def graph_of(nodes, **settings):
        arguments = {"inputs": [("x", "float32", (None, 4))], "outputs": ["y"], **settings}
        return Graph(nodes, **arguments)

    with pytest.raises(SettingsError, match="there is no operator 'Brew'"):
        graph_of([("Brew", ("x",), ("y",))])
    with pytest.raises(
        SettingsError, match=r"Relu y: expected inputs that are computed before, .*z"
    ):
        graph_of([("Relu", ("z",), ("y",))])
    with pytest.raises(SettingsError, match="nothing computes w"):
        graph_of([("Relu", ("x",), ("y",))], outputs=["w"])
    for name in ("forward", "nodes", "_joined", "training", ""):
        with pytest.raises(SettingsError, match="no attributes of a module"):
            graph_of([("Relu", ("x",), ("y",))], parameters=[(name, (3,))])
    with pytest.raises(SettingsError, match="expected a constant of numbers, found object"):
        graph_of([("Relu", ("x",), ("y",))], constants=[("c", "object", (1,), (None,))])


def test_inputs_that_do_not_fit_are_refused():
    graph = classifier()
    with pytest.raises(ShapeError, match=r"expected 1 inputs, \['x'\], found 2"):
        graph(1, 2)
    with pytest.raises(ShapeError, match=r"input 'x': expected shape \(any, 4\), found \(2, 3\)"):
        graph(np.ones((2, 3), "f4"))
    with pytest.raises(ShapeError, match="input 'x': expected float32, found complex128"):
        graph(np.ones((2, 4), complex))
    broken = Graph(
        [("Reshape", ("x", "shape"), ("y",))],
        [("x", "float32", None)],
        ["y"],
        constants=[("shape", "int64", (1,), (7,))],
    )
    with pytest.raises(ShapeError, match="node 'y', Reshape: cannot reshape"):
        broken(np.ones(3, "f4"))


def test_a_copy_has_weights_of_its_own_and_the_same_nodes():
    graph = Graph(
        [("MatMul", ("x", "w"), ("y",), ()), ("Add", ("y", "c"), ("z",), ())],
        inputs=[("x", "float32", (None, 3))], outputs=["z"], parameters=[("w", (3, 2))],
        constants=[("c", np.ones(2, "f4"))],
    )  # fmt: skip
    twin = copy.deepcopy(graph)
    twin.w.data[...] = 1
    x = np.ones((1, 3), "f4")
    np.testing.assert_array_equal(graph(x).data, [[1, 1]])
    np.testing.assert_array_equal(twin(x).data, [[4, 4]])
    assert twin.nodes is graph.nodes
    assert twin.constants is graph.constants
