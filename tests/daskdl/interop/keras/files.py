"""Files of Keras, written by hand with h5py: configurations, and weights in both layouts."""

from __future__ import annotations

import io
import json
import zipfile

import h5py
import numpy as np

from daskdl.interop.keras.reader import from_bytes


def sequential(layers, shape):
    """Return the configuration of a Sequential model; ``layers`` are (kind, settings)."""
    settings = {"batch_shape": [None, *shape], "dtype": "float32", "name": "x"}
    first = {"class_name": "InputLayer", "config": settings}
    rest = [
        {"class_name": kind, "config": {"name": f"l{i}", **settings}}
        for i, (kind, settings) in enumerate(layers)
    ]
    return {"class_name": "Sequential", "config": {"name": "m", "layers": [first, *rest]}}


def h5(config, weights, version="3.0.0", group="model_weights"):
    """Return an .h5 of Keras 1 and 2; ``weights`` are lists of arrays by names of layers."""
    file = io.BytesIO()
    with h5py.File(file, "w") as out:
        if config is not None:
            out.attrs["model_config"] = json.dumps(config)
        top = out.create_group(group) if group else out
        listed = [name.encode() for name in weights]
        if len(listed) < 1000:
            top.attrs["layer_names"] = listed
        for i in range(0, len(listed) if len(listed) >= 1000 else 0, 1000):
            top.attrs[f"layer_names{i // 1000}"] = listed[i : i + 1000]
        top.attrs["keras_version"] = version
        for name, arrays in weights.items():
            layer = top.create_group(name)
            names = [f"{name}/w{i}:0".encode() for i in range(len(arrays))]
            layer.attrs["weight_names"] = names
            for key, array in zip(names, arrays, strict=True):
                layer[key.decode()] = np.asarray(array)
    return file.getvalue()


def weights_h5(weights, kind="kind", named=True):
    """Return the .weights.h5 of Keras 3: groups by class and number, later ones with names."""
    file = io.BytesIO()
    with h5py.File(file, "w") as out:
        for i, (name, arrays) in enumerate(weights.items()):
            variables = out.create_group(f"layers/{kind}{f'_{i}' if i else ''}/vars")
            if named:
                variables.attrs["name"] = name
            for j, array in enumerate(arrays):
                variables[str(j)] = np.asarray(array)
    return file.getvalue()


def keras(config, weights, kind="kind", named=True):
    """Return a .keras archive."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("metadata.json", "{}")
        archive.writestr("config.json", json.dumps(config))
        archive.writestr("model.weights.h5", weights_h5(weights, kind, named))
    return file.getvalue()


def graph(data):
    return from_bytes(data, "m").eval()
