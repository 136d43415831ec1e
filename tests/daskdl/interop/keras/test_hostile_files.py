"""Damaged and hostile files of Keras: one sentence each time, and no other file is read."""

from __future__ import annotations

import io
import json

import h5py
import numpy as np
import pytest

from daskdl.errors import ModelFileError
from daskdl.interop.keras.reader import weights_of
from tests.daskdl.interop.hostile import mutants, survived
from tests.daskdl.interop.keras.files import graph, h5, keras, sequential
from tests.daskdl.interop.keras.test_layers import parts

H5 = h5(*parts("pictures to classes")[:2])
KERAS = keras(*parts("pictures to classes")[:2])


def attempt(data):
    net = graph(data)
    net(*[np.zeros([n or 2 for n in s], d) for _, d, s in net.inputs])


def test_the_files_themselves_are_read():
    attempt(H5)
    attempt(KERAS)


@pytest.mark.slow
@pytest.mark.parametrize("count", [150, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize("data", [H5, KERAS], ids=["h5", "keras"])
def test_damaged_files(data, count):
    assert len(survived(attempt, data, count)) > 5


@pytest.mark.slow
@pytest.mark.parametrize("count", [150, pytest.param(1000, marks=pytest.mark.long)])
def test_damaged_configurations(count):
    config, weights, _ = parts("pictures to classes")
    text = json.dumps(config).encode()
    damaged = iter(mutants(text, count))

    def read(_):
        data = h5({}, weights)
        with h5py.File(file := io.BytesIO(data), "r+") as out:
            out.attrs["model_config"] = next(damaged).replace(b"\0", b"").decode("latin-1")
        attempt(file.getvalue())

    assert len(survived(read, text, count)) > 10


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


def test_sizes_that_the_file_does_not_bear_out():
    for settings in ({}, {"chunks": (1000,), "compression": "gzip"}):
        data = file_with(lambda layer, s=settings: layer.create_dataset("w", (1 << 40,), "f4", **s))
        with pytest.raises(ModelFileError, match="takes more than the file holds"):
            weights_of(data, "m")


def test_what_is_no_number():
    for value in ("text", np.array([(1, 2.0)], "i4,f4"), np.zeros(3, "c8")):
        with pytest.raises(ModelFileError, match="expected numbers"):
            weights_of(file_with(lambda layer, v=value: layer.create_dataset("w", data=v)), "m")


def test_groups_within_themselves():
    with h5py.File(file := io.BytesIO(), "w") as out:
        held = out.create_group("layers/dense")
        held["again"] = held
    with pytest.raises(ModelFileError, match="deeper than 20 times"):
        weights_of(file.getvalue(), "m")


def test_configurations_that_are_very_deep():
    config = sequential([("Dense", {"units": 2})], (3,))
    text = json.dumps(config).replace('"units": 2', '"units": ' + "[" * 40_000 + "]" * 40_000)
    with h5py.File(file := io.BytesIO(), "w", track_order=True) as out:
        out.create_group("model_weights").attrs["layer_names"] = [b"l0"]
        out.create_group("model_weights/l0").attrs["weight_names"] = np.zeros(0, "S1")
        out.attrs["model_config"] = text[:60_000]
    with pytest.raises(ModelFileError, match="configuration is damaged"):
        graph(file.getvalue())
