"""Every layer gives the numbers of Keras where it is installed, and runs where it is not."""

from __future__ import annotations

import copy
import io
import json

import h5py
import numpy as np
import pytest

from daskdl.errors import ModelFileError
from daskdl.interop.keras.layers import TABLE
from daskdl.interop.keras.reader import weights_of
from daskdl.interop.keras.topology import NUMBER
from tests.daskdl.gradients import normal
from tests.daskdl.interop.keras.files import graph, h5, keras, sequential

IMAGES, STEPS = (9, 8, 3), (7, 3)


def w(*shape):
    return normal(*shape).astype("f4")


def positive(*shape):
    return np.abs(w(*shape)) + 0.5


NORM = [w(3), w(3), w(3), positive(3)]
LSTM, GRU = [w(3, 16), w(4, 16), w(16)], [w(3, 12), w(4, 12), w(2, 12)]
#: name: (layers, weights of each, shape of a sample)
CASES = {
    "conv": ([("Conv2D", {"filters": 4, "kernel_size": 3, "strides": 2, "padding": "same",
                          "activation": "relu"})], [[w(3, 3, 3, 4), w(4)]], IMAGES),
    "dilated conv without bias": (
        [("Conv2D", {"filters": 4, "kernel_size": [3, 2], "dilation_rate": 2, "use_bias": False})],
        [[w(3, 2, 3, 4)]], IMAGES),
    "conv of steps": ([("Conv1D", {"filters": 4, "kernel_size": 3, "padding": "same"})],
                      [[w(3, 3, 4), w(4)]], STEPS),
    "causal conv": ([("Conv1D", {"filters": 4, "kernel_size": 3, "padding": "causal",
                                 "dilation_rate": 2})], [[w(3, 3, 4), w(4)]], STEPS),
    "conv of volumes": ([("Conv3D", {"filters": 2, "kernel_size": 2})],
                        [[w(2, 2, 2, 3, 2), w(2)]], (4, 5, 4, 3)),
    "depthwise": ([("DepthwiseConv2D", {"kernel_size": 3, "depth_multiplier": 2, "strides": 2,
                                        "padding": "same"})], [[w(3, 3, 3, 2), w(6)]], IMAGES),
    "separable": ([("SeparableConv2D", {"filters": 4, "kernel_size": 3})],
                  [[w(3, 3, 3, 1), w(1, 1, 3, 4), w(4)]], IMAGES),
    "transposed": ([("Conv2DTranspose", {"filters": 4, "kernel_size": 3, "strides": 2,
                                         "padding": "same"})], [[w(3, 3, 4, 3), w(4)]], IMAGES),
    "transposed without padding": (
        [("Conv2DTranspose", {"filters": 4, "kernel_size": 3, "strides": 2})],
        [[w(3, 3, 4, 3), w(4)]], IMAGES),
    "dense": ([("Flatten", {}), ("Dense", {"units": 4, "activation": "softmax"})],
              [[], [w(216, 4), w(4)]], IMAGES),
    "dense of steps": ([("Dense", {"units": 4, "use_bias": False})], [[w(3, 4)]], STEPS),
    "embedding": ([("Embedding", {"input_dim": 5, "output_dim": 3})], [[w(5, 3)]], (6,)),
    "batch norm": ([("BatchNormalization", {"epsilon": 0.01})], [NORM], IMAGES),
    "batch norm without scale": ([("BatchNormalization", {"scale": False})], [NORM[1:]], IMAGES),
    "batch norm of vectors": ([("BatchNormalization", {"center": False})], [NORM[1:]], (3,)),
    "layer norm": ([("LayerNormalization", {})], [[w(3), w(3)]], STEPS),
    "prelu": ([("PReLU", {"shared_axes": [1, 2]})], [[w(1, 1, 3)]], IMAGES),
    "layer scale": ([("LayerScale", {"projection_dim": 3, "init_values": 1e-6}),
                     ("StochasticDepth", {"drop_path_rate": 0.1})], [[w(3)]], STEPS),
    "normalization": ([("Normalization", {"axis": -1})], [[w(3), positive(3), np.array(0)]], STEPS),
    "lstm": ([("LSTM", {"units": 4})], [LSTM], STEPS),
    "lstm, all states": ([("LSTM", {"units": 4, "return_sequences": True})], [LSTM], STEPS),
    "gru": ([("GRU", {"units": 4})], [GRU], STEPS),
    "gru, reset before": ([("GRU", {"units": 4, "reset_after": False})],
                          [[*GRU[:2], w(12)]], STEPS),
    "gru with other functions": (
        [("GRU", {"units": 4, "recurrent_activation": "hard_sigmoid", "activation": "relu"})],
        [GRU], STEPS),
    "rnn": ([("SimpleRNN", {"units": 4, "return_sequences": True})],
            [[w(3, 4), w(4, 4), w(4)]], STEPS),
    "rnn backwards": ([("SimpleRNN", {"units": 4, "go_backwards": True, "use_bias": False})],
                      [[w(3, 4), w(4, 4)]], STEPS),
    "bidirectional": (
        [("Bidirectional", {"layer": {"class_name": "LSTM", "module": "keras.layers",
                                      "config": {"units": 4, "return_sequences": True,
                                                 "name": "inner"}}})],
        [[*LSTM, w(3, 16), w(4, 16), w(16)]], STEPS),
    "steps of a mask": (
        [("Embedding", {"input_dim": 5, "output_dim": 3, "mask_zero": True}),
         ("Dropout", {"rate": 0.5}), ("LSTM", {"units": 4})], [[w(5, 3)], [], LSTM], (6,)),
    "states of masked steps": (
        [("Embedding", {"input_dim": 3, "output_dim": 3, "mask_zero": True}),
         ("GRU", {"units": 4, "return_sequences": True})], [[w(3, 3)], GRU], (6,)),
    "both directions of a mask": (
        [("Embedding", {"input_dim": 3, "output_dim": 3, "mask_zero": True}),
         ("Bidirectional", {"layer": {"class_name": "LSTM", "module": "keras.layers",
                                      "config": {"units": 4, "return_sequences": True,
                                                 "name": "inner"}}}),
         ("SimpleRNN", {"units": 4})],
        [[w(3, 3)], [*LSTM, w(3, 16), w(4, 16), w(16)], [w(8, 4), w(4, 4), w(4)]], (6,)),
    "mean of a mask": (
        [("Embedding", {"input_dim": 3, "output_dim": 3, "mask_zero": True}),
         ("GlobalAveragePooling1D", {})], [[w(3, 3)]], (6,)),
    "masking": ([("Masking", {}), ("SimpleRNN", {"units": 4})],
                [[], [w(3, 4), w(4, 4), w(4)]], STEPS),
    "group norm": ([("GroupNormalization", {"groups": 2})], [[w(4), w(4)]], (5, 6, 4)),
    "group norm of each channel": ([("GroupNormalization", {"groups": -1, "scale": False})],
                                   [[w(3)]], STEPS),
    "resizing": ([("Resizing", {"height": 5, "width": 11})], [], IMAGES),
    "layer for each step": (
        [("TimeDistributed", {"layer": {"class_name": "Conv2D", "module": "keras.layers",
                                        "config": {"filters": 4, "kernel_size": 3,
                                                   "name": "inner"}}})],
        [[w(3, 3, 3, 4), w(4)]], (2, *IMAGES)),
    "max pool": ([("MaxPooling2D", {"pool_size": 3, "strides": 2, "padding": "same"})], [], IMAGES),
    "mean pool": ([("AveragePooling2D", {"pool_size": [3, 2], "padding": "same"})], [], IMAGES),
    "pool of steps": ([("MaxPooling1D", {"pool_size": 2})], [], STEPS),
    "global mean": ([("GlobalAveragePooling2D", {})], [], IMAGES),
    "global max, kept": ([("GlobalMaxPooling2D", {"keepdims": True})], [], IMAGES),
    "global mean of steps": ([("GlobalAveragePooling1D", {})], [], STEPS),
    "zero padding": ([("ZeroPadding2D", {"padding": [[1, 2], [0, 3]]})], [], IMAGES),
    "zero padding of steps": ([("ZeroPadding1D", {"padding": [1, 2]})], [], STEPS),
    "cropping": ([("Cropping2D", {"cropping": [[1, 2], [0, 3]]})], [], IMAGES),
    "upsampling": ([("UpSampling2D", {"size": [2, 3]})], [], IMAGES),
    "bilinear": ([("UpSampling2D", {"size": 2, "interpolation": "bilinear"})], [], IMAGES),
    "reshape": ([("Reshape", {"target_shape": [-1, 4]})], [], IMAGES),
    "permute": ([("Permute", {"dims": [3, 1, 2]})], [], IMAGES),
    "repeat": ([("RepeatVector", {"n": 3})], [], (4,)),
    "dropout": ([("Dropout", {"rate": 0.5}), ("SpatialDropout2D", {"rate": 0.5})], [], IMAGES),
    "noise": ([("GaussianNoise", {"stddev": 0.5})], [], IMAGES),
    "rescaling": ([("Rescaling", {"scale": 0.5, "offset": -1})], [], IMAGES),
    "rescaling of channels": (
        [("MaxPooling2D", {"pool_size": 1}),
         ("Rescaling", {"scale": [0.5, 2.0, 3.0], "offset": [1, 2, 3]})], [], IMAGES),
    "global mean of volumes": ([("GlobalAveragePooling3D", {})], [], (4, 5, 4, 3)),
    "relu to 6": ([("ReLU", {"max_value": 6.0})], [], IMAGES),
    "relu with slope": ([("ReLU", {"negative_slope": 0.1, "max_value": 0.5})], [], IMAGES),
    "leaky": ([("LeakyReLU", {"negative_slope": 0.2})], [], IMAGES),
    "elu": ([("ELU", {"alpha": 0.5})], [], IMAGES),
    "softmax": ([("Softmax", {})], [], IMAGES),
    "pictures to classes": (
        [("Conv2D", {"filters": 4, "kernel_size": 3}), ("BatchNormalization", {}),
         ("Activation", {"activation": "relu"}), ("MaxPooling2D", {"pool_size": 2}),
         ("Flatten", {}), ("Dense", {"units": 2})],
        [[w(3, 3, 3, 4), w(4)], [w(4), w(4), w(4), positive(4)], [], [], [], [w(36, 2), w(2)]],
        IMAGES),
}  # fmt: skip
CASES |= {
    name: ([("Activation", {"activation": name})], [], STEPS)
    for name in ("sigmoid", "tanh", "softplus", "softsign", "selu", "exponential", "swish", "gelu",
                 "hard_sigmoid", "relu6", "leaky_relu", "log_softmax", "mish", "silu", "linear")
}  # fmt: skip


def parts(name):
    layers, arrays, shape = CASES[name]
    arrays = [*arrays, *[[]] * (len(layers) - len(arrays))]
    config = sequential(layers, shape)
    x = w(2, *shape)
    if "Embedding" in str(layers):
        x = np.abs(2 * x) % 3 // 1
        x[0, :2], x[1, 3:] = 0, 0  # masked steps at the front and at the end
    elif "Masking" in str(layers):
        x[0, :2] = x[1, 3] = 0
    return config, {f"l{i}": a for i, a in enumerate(arrays)}, x.astype("f4")


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow) if n in ("gru", "lstm", "rnn") else n for n in CASES],
)
def test_both_formats_give_the_same(name):
    config, weights, x = parts(name)
    result = graph(h5(config, weights))(x).data
    assert np.isfinite(result).all()
    np.testing.assert_array_equal(result, graph(keras(config, weights))(x).data)


# A layer of keras.applications: Keras does not find it by its name.
@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # Keras' own
@pytest.mark.parametrize("name", sorted(CASES.keys() - {"layer scale"}))
def test_numbers_of_keras(name, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    Sequential = pytest.importorskip("keras").Sequential
    config, weights, x = parts(name)
    model = Sequential.from_config(copy.deepcopy(config["config"]))  # it changes what it reads
    for layer in model.layers:
        layer.set_weights(weights[layer.name])
        if hasattr(layer, "finalize_state"):
            layer.finalize_state()
    right = np.asarray(model.predict(x, verbose=0))
    result = graph(h5(config, weights))(x).data
    assert result.shape == right.shape
    np.testing.assert_allclose(result, right, atol=2e-5, rtol=1e-5)


def test_every_layer_has_a_case():
    kinds = {kind for layers, *_ in CASES.values() for kind, _ in layers}
    same = {"Convolution1D", "Convolution2D", "DepthwiseConv1D", "SeparableConv1D", "MaxPool1D",
            "MaxPool2D", "AvgPool1D", "AvgPool2D", "GlobalMaxPool2D", "GlobalAvgPool2D",
            "Conv1DTranspose", "Conv3DTranspose", "MaxPooling3D", "AveragePooling1D",
            "AveragePooling3D", "GlobalMaxPooling1D", "GlobalMaxPooling3D", "ZeroPadding3D",
            "Cropping1D", "Cropping3D", "UpSampling1D", "SpatialDropout1D", "AlphaDropout",
            "GaussianDropout",
            "ActivityRegularization", "ThresholdedReLU"}  # fmt: skip
    merging = {"Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "Average",
               "Concatenate", "CustomScaleLayer", NUMBER}  # fmt: skip
    augmenting = {kind for kind in TABLE if kind.startswith("Random")}
    composed = {"MultiHeadAttention", "NotEqual", "Any", "LogicalOr"}  # in test_composed.py
    assert TABLE.keys() == kinds | same | merging | augmenting | composed


H5 = h5(*parts("pictures to classes")[:2])
KERAS = keras(*parts("pictures to classes")[:2])


def file_with(write):
    with h5py.File(file := io.BytesIO(), "w") as out:
        layer = out.create_group("model_weights/l")
        out["model_weights"].attrs["layer_names"] = [b"l"]
        layer.attrs["weight_names"] = [b"w"]
        write(layer)
    return file.getvalue()


def test_no_other_file_is_read(tmp_path):
    (tmp_path / "secret.raw").write_bytes(b"\0" * 64)
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["w"] = np.zeros(3, "f4")

    def external(layer):
        layer.create_dataset("w", (16,), "f4", external=[(str(tmp_path / "secret.raw"), 0, 64)])

    def link(layer):
        layer["w"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "w")

    def virtual(layer):
        layout = h5py.VirtualLayout((3,), "f4")
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "w", (3,))
        layer.create_virtual_dataset("w", layout)

    for write, sentence in ((external, "in other files"), (link, "out of its place"),
                            (virtual, "in other files")):  # fmt: skip
        with pytest.raises(ModelFileError, match=sentence):
            weights_of(file_with(write), "m")


def test_shapes_larger_than_the_file():
    for settings in ({}, {"chunks": (1000,), "compression": "gzip"}):
        data = file_with(lambda layer, s=settings: layer.create_dataset("w", (1 << 40,), "f4", **s))
        with pytest.raises(ModelFileError, match="takes more than the file holds"):
            weights_of(data, "m")


def test_values_that_are_no_numbers():
    for value in ("text", np.array([(1, 2.0)], "i4,f4"), np.zeros(3, "c8")):
        with pytest.raises(ModelFileError, match="expected numbers"):
            weights_of(file_with(lambda layer, v=value: layer.create_dataset("w", data=v)), "m")


def test_groups_within_themselves():
    with h5py.File(file := io.BytesIO(), "w") as out:
        group = out.create_group("layers/dense")
        group["again"] = group
    with pytest.raises(ModelFileError, match="deeper than 20 times"):
        weights_of(file.getvalue(), "m")


def test_configurations_that_are_very_deep():
    config = sequential([("Dense", {"units": 2})], (3,))
    text = json.dumps(config).replace('"units": 2', '"units": ' + "[" * 40_000 + "]" * 40_000)
    with h5py.File(file := io.BytesIO(), "w", track_order=True) as out:
        out.create_group("model_weights").attrs["layer_names"] = [b"l0"]
        out.create_group("model_weights/l0").attrs["weight_names"] = np.zeros(0, "S1")
        out.attrs["model_config"] = text[:60_000]
    with pytest.raises(ModelFileError, match="damaged or not valid JSON"):
        graph(file.getvalue())
