"""Attention of several heads, and masks of steps, against numpy and unmasked runs."""

from __future__ import annotations

import io

import h5py
import numpy as np
import pytest

from tests.daskdl.interop.keras.files import graph, h5, keras, sequential
from tests.daskdl.interop.keras.test_layers import CASES, w
from tests.daskdl.interop.keras.test_reader import functional, tensor


def attended(query, value, arrays):
    """Return Keras' MultiHeadAttention of sequences by numpy, with the value as key."""
    (wq, bq), (wk, bk), (wv, bv), (wo, bo) = arrays
    q = np.einsum("ntc,chd->nhtd", query, wq) + bq[:, None]
    k, v = (np.einsum("ntc,chd->nhtd", value, a) + b[:, None] for a, b in ((wk, bk), (wv, bv)))
    scores = np.exp(q @ k.swapaxes(2, 3) / np.sqrt(wq.shape[2]))
    y = scores / scores.sum(-1, keepdims=True) @ v
    return np.einsum("nhtd,hdc->ntc", y, wo) + bo


@pytest.mark.parametrize("new", [True, False])
def test_attention_of_several_heads(new):
    settings = {"num_heads": 2, "key_dim": 4, "value_dim": 5, "attention_axes": [1]}
    layers = [("s", "Reshape", {"target_shape": [-1, 3]}, ["x"]),
              ("y", "MultiHeadAttention", settings, ["x"])]  # fmt: skip
    config = functional(layers, new=new)
    call = config["config"]["layers"][2]["inbound_nodes"]
    if new:
        call[0] = {"args": [tensor("s")], "kwargs": {"value": tensor("s"), "key": None}}
    else:
        call[0] = [["s", 0, 0, {"value": ["s", 0, 0]}]]
    arrays = [(w(3, 2, n), w(2, n)) for n in (4, 4, 5)] + [(w(2, 5, 3), w(3))]
    file = io.BytesIO(h5(config, {"y": []}))
    with h5py.File(file, "a") as out:
        layer, names = out["model_weights/y"], []
        for part, pair in zip(("query", "key", "value", "attention_output"), arrays, strict=True):
            for name, array in zip(("kernel", "bias"), pair, strict=True):
                names.append(f"y/{part}/{name}".encode())
                layer[names[-1].decode()] = array
        layer.attrs["weight_names"] = names
    x = w(2, 4, 5, 3)
    s = x.reshape(2, 20, 3)
    net = graph(file.getvalue())
    np.testing.assert_allclose(net(x).data, attended(s, s, arrays), atol=1e-5)


def test_masks_that_keras_3_writes():
    layers = [("s", "Reshape", {"target_shape": [-1, 3]}, ["x"]),
              ("n", "NotEqual", {"name": "n"}, ["s"]), ("m", "NotEqual", {"name": "m"}, ["s"]),
              ("k", "Any", {"name": "k", "axis": -1, "keepdims": False}, ["n"]),
              ("l", "Any", {"name": "l", "axis": -1, "keepdims": False}, ["m"]),
              ("o", "LogicalOr", {"name": "o"}, ["k"]),
              ("a", "GlobalAveragePooling1D", {}, ["s"]),
              ("b", "GlobalAveragePooling1D", {}, ["s"]),
              ("y", "Concatenate", {"axis": -1}, ["a", "b"])]  # fmt: skip
    config = functional(layers)
    nodes = {one["name"]: one["inbound_nodes"] for one in config["config"]["layers"]}
    nodes["n"][0] = {"args": [tensor("s"), -1.0], "kwargs": {}}
    nodes["m"][0] = {"args": [tensor("s"), -2], "kwargs": {}}
    nodes["o"][0] = {"args": [tensor("k"), tensor("l")], "kwargs": {}}
    nodes["a"][0] = {"args": [tensor("s")], "kwargs": {"mask": tensor("k")}}
    nodes["b"][0] = {"args": [tensor("s")], "kwargs": {"mask": tensor("o")}}
    x = w(2, 4, 5, 3)
    x[0, 1, 2:] = x[1, 0, 0] = x[1, 2, 2, 0] = -1
    s = x.reshape(2, 20, 3)
    counted = (s != -1).any(-1)
    right = [[*a[c].mean(0), *a.mean(0)] for a, c in zip(s, counted, strict=True)]
    np.testing.assert_allclose(graph(h5(config, {}))(x).data, right, atol=1e-6)


TEXTS = np.array([[0, 0, 1, 2, 0, 1], [2, 1, 1, 0, 0, 0]], "f4")


def net_of(name):
    """Return the network of a case, for texts of any length."""
    layers, arrays, _ = CASES[name]
    return graph(keras(sequential(layers, (None,)), {f"l{i}": a for i, a in enumerate(arrays)}))


@pytest.mark.parametrize("name", ["steps of a mask", "both directions of a mask", "mean of a mask"])
def test_masked_steps_change_no_result(name):
    net = net_of(name)
    for text, y in zip(TEXTS, net(TEXTS).data, strict=True):
        np.testing.assert_allclose(y, net(text[None, text != 0]).data[0], atol=1e-6)


def test_masked_steps_have_the_state_before_them():
    y = net_of("states of masked steps")(TEXTS).data
    assert not y[0, :2].any()
    assert y[0, 2:].any(-1).all()
    np.testing.assert_array_equal(y[0, 4], y[0, 3])
    np.testing.assert_array_equal(y[1, 3:], y[1, [2, 2, 2]])
