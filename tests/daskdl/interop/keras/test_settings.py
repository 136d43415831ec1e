"""Unknown settings are refused; masks, quantised layers, names and models in models."""

from __future__ import annotations

import copy
import io
import json
import zipfile

import h5py
import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ModelFileError
from daskdl.interop.keras import load_weights
from daskdl.interop.keras.layers import TABLE
from tests.daskdl.interop.keras.files import graph, h5, keras, sequential, weights_h5
from tests.daskdl.interop.keras.test_layers import CASES, IMAGES, LSTM, NORM, parts, positive, w
from tests.daskdl.interop.keras.test_reader import functional, tensor


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("write", [h5, keras])
def test_a_setting_that_is_not_known_is_refused_in_any_layer(name, write):
    config, weights, _ = parts(name)
    for i in range(1, len(config["config"]["layers"])):
        changed = copy.deepcopy(config)
        changed["config"]["layers"][i]["config"]["newest"] = None  # not set: not refused
        graph(write(changed, weights))
        changed["config"]["layers"][i]["config"]["newest"] = 0.5
        with pytest.raises(ModelFileError, match=rf"layer 'l{i - 1}', \w+: newest: not known to"):
            graph(write(changed, weights))


def test_settings_that_must_be_off():
    for kind, translator in TABLE.items():
        assert not translator.keys & translator.off, kind
    for key in ("return_state", "stateful"):
        config = sequential([("LSTM", {"units": 4, key: False})], (7, 3))
        graph(h5(config, {"l0": LSTM}))
        config["config"]["layers"][1]["config"][key] = True
        with pytest.raises(ModelFileError, match=f"{key}: not known to this reader"):
            graph(h5(config, {"l0": LSTM}))


def test_a_backward_layer_with_other_settings_is_refused():
    config, weights, _ = parts("bidirectional")
    settings = config["config"]["layers"][1]["config"]
    settings["backward_layer"] = copy.deepcopy(settings["layer"])
    graph(keras(config, weights))
    settings["backward_layer"]["config"]["activation"] = "relu"
    with pytest.raises(ModelFileError, match=r"backward_layer: expected the settings of the other"):
        graph(keras(config, weights))


POLICY = {
    "class_name": "QuantizedDTypePolicy",
    "config": {"mode": "int8", "source_name": "float32"},
}


@pytest.mark.parametrize("dtype", ["int8_from_float32", POLICY, {"config": {"name": "float8"}}])
@pytest.mark.parametrize("name", ["dense of steps", "embedding", "lstm"])
def test_quantised_layers_are_refused(name, dtype):
    config, weights, _ = parts(name)
    settings = config["config"]["layers"][1]["config"]
    settings["dtype"] = {"class_name": "DTypePolicy", "config": {"name": "mixed_bfloat16"}}
    graph(keras(config, weights))
    settings["dtype"] = dtype
    with pytest.raises(ModelFileError, match="quantised layers are not read, save the model"):
        graph(keras(config, weights))


def test_kernels_of_whole_numbers_are_refused(tmp_path):
    config, weights, _ = parts("dense of steps")
    whole = {name: [a.astype("i1") for a in arrays] for name, arrays in weights.items()}
    with pytest.raises(ModelFileError, match="kernel of floats, found int8; quantised layers"):
        graph(keras(config, whole))
    (tmp_path / "w.weights.h5").write_bytes(weights_h5(whole))
    net = nn.Linear(3, 4, bias=False)
    before = net.weight.data.copy()
    with pytest.raises(ModelFileError, match="expected floats, found int8; quantised weights"):
        load_weights(net, tmp_path / "w.weights.h5")
    np.testing.assert_array_equal(net.weight.data, before)


def test_masks_are_refused_where_they_are_not_used():
    layers = [("Embedding", {"input_dim": 5, "output_dim": 3, "mask_zero": True}),
              ("Dense", {"units": 3}), ("Softmax", {})]  # fmt: skip
    weights = {"l0": [w(5, 3)], "l1": [w(3, 3), w(3)], "l2": []}
    with pytest.raises(ModelFileError, match=r"Softmax: it is called with a mask, such as mask"):
        graph(keras(sequential(layers, (6,)), weights))
    layers[0][1]["mask_zero"] = False
    graph(keras(sequential(layers, (6,)), weights))
    layers[0][1]["mask_zero"] = True  # Flatten drops it, as in Keras
    flat = [layers[0], ("Flatten", {}), ("Dense", {"units": 1})]
    graph(keras(sequential(flat, (6,)), {"l0": weights["l0"], "l1": [], "l2": [w(18, 1), w(1)]}))


def test_predict_of_keras_switches_preprocessing_off():
    config = functional([("y", "RandomFlip", {}, ["x"])])
    config["config"]["layers"][1]["inbound_nodes"][0]["kwargs"] = {"training": True}
    x = w(2, 4, 5, 3)
    np.testing.assert_array_equal(graph(h5(config, {}))(x).data, x)


@pytest.mark.parametrize("new", [True, False])
def test_calls_with_more_than_tensors_are_refused(new):
    config = functional([("y", "Dropout", {"rate": 0.5}, ["x"])], new=new)
    graph(h5(config, {}))
    call = config["config"]["layers"][1]["inbound_nodes"]
    if new:
        call[0]["kwargs"] = {"training": True}
    else:
        call[0][0][3] = {"training": True}
    with pytest.raises(
        ModelFileError, match="layer 'y', Dropout, is called with more than tensors"
    ):
        graph(h5(config, {}))
    config = functional([("y", "Softmax", {}, ["x"])])
    config["config"]["layers"][1]["inbound_nodes"][0]["kwargs"] = {"mask": tensor("x")}
    with pytest.raises(ModelFileError, match="layer 'y', Softmax: it is called with a mask, such"):
        graph(h5(config, {}))
    config = functional([("y", "Dropout", {"rate": 0.5}, ["x", "z"])], ("x", "z"))
    with pytest.raises(ModelFileError, match="Dropout: expected one input, found 2"):
        graph(h5(config, {}))


def test_foreign_layers_with_names_of_keras_are_refused():
    config = functional([("y", "ReLU", {}, ["x"])])
    config["config"]["layers"][1]["module"] = "keras.layers"
    graph(h5(config, {}))
    for module in ("mine.layers", "keras.src.ops.nn"):
        config["config"]["layers"][1]["module"] = module
        with pytest.raises(ModelFileError, match=rf"not supported: {module}\.ReLU \(layer 'y'\)"):
            graph(h5(config, {}))


def test_inputs_and_results_by_name():
    layers = [("s", "Add", {}, ["x", "z"]), ("d", "Subtract", {}, ["x", "z"])]
    config = functional(layers, ("x", "z"))
    config["config"]["input_layers"] = {"first": ["x", 0, 0], "second": ["z", 0, 0]}
    config["config"]["output_layers"] = {"sum": ["s", 0, 0], "difference": ["d", 0, 0]}
    net = graph(h5(config, {}))
    a, b = w(2, 4, 5, 3), w(2, 4, 5, 3)
    difference, total = net.predict({"second": b, "first": a})
    np.testing.assert_allclose(total, a + b, atol=1e-6)
    np.testing.assert_allclose(difference, a - b, atol=1e-6)


def inner(name, group=()):
    """Return a model of one Dense and one norm, to be a layer of another model."""
    layers = [
        {"class_name": "Dense", "config": {"name": "d", "units": 3}},
        {"class_name": "BatchNormalization", "config": {"name": "n"}},
    ]
    config = {"name": name, "layers": [*layers, *group]}
    return {"class_name": "Sequential", "name": name, "config": config}


@pytest.mark.parametrize("write", ["keras", "h5"])
@pytest.mark.parametrize("deep", [False, True])
def test_models_in_models(write, deep):
    dense, norm, more = [w(3, 3), w(3)], NORM, [w(3, 3), w(3)]
    part = inner("outer", [inner("deep")] if deep else [])
    if deep:
        part["config"]["layers"][2]["config"]["layers"] = [
            {"class_name": "Dense", "config": {"name": "e", "units": 3, "activation": "tanh"}}
        ]
    config = functional([("y", "Add", {}, ["outer", "x"])])
    call = config["config"]["layers"][1]["inbound_nodes"]
    part["inbound_nodes"] = [{"args": [t], "kwargs": {}} for t in call[0]["args"][0][1:]]
    twice = copy.deepcopy(part["inbound_nodes"][0])  # the second call takes the first one's result
    twice["args"][0]["config"]["keras_history"] = ["outer", 0, 0]
    part["inbound_nodes"].append(twice)
    call[0]["args"][0][0]["config"]["keras_history"] = ["outer", 1, 0]
    config["config"]["layers"].insert(1, part)
    file = io.BytesIO()
    with h5py.File(file, "w") as out:
        if write == "keras":
            groups = {
                "sequential/layers/dense": dense,
                "sequential/layers/batch_normalization": norm,
            }
            if deep:
                groups["sequential/layers/sequential/layers/dense"] = more
            for name, arrays in groups.items():
                for i, array in enumerate(arrays):
                    out[f"layers/{name}/vars/{i}"] = array
            out["layers/sequential"].create_group("vars").attrs["name"] = "outer"
        else:
            top = out.create_group("model_weights")
            top.attrs["layer_names"] = [b"outer"]
            group = top.create_group("outer")
            order = {"d/kernel:0": dense[0], "d/bias:0": dense[1], "n/gamma:0": norm[0],
                     "n/beta:0": norm[1]}  # fmt: skip
            if deep:
                order |= {"e/kernel:0": more[0], "e/bias:0": more[1]}
            order |= {"n/moving_mean:0": norm[2], "n/moving_variance:0": norm[3]}
            group.attrs["weight_names"] = [key.encode() for key in order]
            for key, array in order.items():
                group[key] = array
            out.attrs["model_config"] = json.dumps(config)
    data = file.getvalue()
    if write == "keras":
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("config.json", json.dumps(config))
            archive.writestr("model.weights.h5", data)
        data = packed.getvalue()
    net, x = graph(data), w(2, 4, 5, 3)

    def once(x):
        x = (x @ dense[0] + dense[1] - norm[2]) / np.sqrt(norm[3] + 1e-3) * norm[0] + norm[1]
        return np.tanh(x @ more[0] + more[1]) if deep else x

    np.testing.assert_allclose(net(x).data, once(once(x)) + x, rtol=1e-4, atol=1e-4)
    names = {"outer/d/kernel", "outer/d/bias", "outer/n/gamma", "outer/n/beta",
             "outer/n/moving_mean", "outer/n/moving_variance"}  # fmt: skip
    names |= {"outer/deep/e/kernel", "outer/deep/e/bias"} if deep else set()
    assert {name for name, _ in net.held()} == names


def test_normalization_by_given_statistics_and_its_inverse():
    x, mean, variance = w(2, 5, 3), w(3), positive(3)
    layer = {"axis": [-1], "mean": mean.tolist(), "variance": variance.tolist()}
    net = graph(keras(sequential([("Normalization", layer)], (5, 3)), {"l0": []}))
    np.testing.assert_allclose(net(x).data, (x - mean) / np.sqrt(variance), atol=1e-5)
    one = {"axis": [], "mean": 5.0, "variance": 4.0}
    net = graph(keras(sequential([("Normalization", one)], (5, 3)), {"l0": []}))
    np.testing.assert_allclose(net(x).data, (x - 5) / 2, atol=1e-5)
    back = {"axis": [-1], "invert": True}
    config = sequential([("Normalization", back)], (5, 3))
    net = graph(keras(config, {"l0": [mean, variance, np.array(3)]}))
    np.testing.assert_allclose(net(x).data, x * np.sqrt(variance) + mean, atol=1e-5)
    with pytest.raises(ModelFileError, match=r"expected a mean and a variance, found none; call"):
        graph(keras(config, {"l0": []}))


def test_augmentation_leaves_pictures_alone():
    kinds = [(kind, {"seed": 1}) for kind in TABLE if kind.startswith("Random")]
    net, x = graph(keras(sequential(kinds, IMAGES), {"l0": []})), w(2, *IMAGES)
    np.testing.assert_array_equal(net(x).data, x)


def test_bfloat16():
    config, weights, x = parts("dense of steps")
    kernel = (weights["l0"][0].view("u4") >> 16).astype("u2")
    file = io.BytesIO()
    with h5py.File(file, "w") as out:
        group = out.create_group("layers/dense/vars")
        group.attrs["name"] = "l0"
        group.create_dataset("0", data=kernel.view("V2")).attrs["dtype"] = "bfloat16"
        out.attrs["model_config"] = json.dumps(config)
    rounded = (kernel.astype("u4") << 16).view("f4")
    np.testing.assert_allclose(graph(file.getvalue())(x).data, x @ rounded, atol=1e-5)
