"""Damaged files of all formats raise our errors in one line, and no other exception."""

from __future__ import annotations

import io
import json

import h5py
import pytest

from daskdl.interop.caffe import reader as caffe
from daskdl.interop.onnx.reader import read as onnx
from daskdl.interop.torch7.modules import graph_of
from tests.daskdl.interop.caffe import test_prototxt as prototxt
from tests.daskdl.interop.checks import messages_of_mutants, run_on_zeros
from tests.daskdl.interop.keras.files import graph as keras
from tests.daskdl.interop.keras.files import h5
from tests.daskdl.interop.keras.test_layers import H5, KERAS, parts
from tests.daskdl.interop.onnx.models import picture_model
from tests.daskdl.interop.tensorflow.files import graph as tensorflow
from tests.daskdl.interop.tensorflow.test_reader import DATA
from tests.daskdl.interop.torch7.test_reader import NETWORK

TEXT, CONFIG, WEIGHTS = prototxt.TEXT.encode(), *parts("pictures to classes")[:2]


def configured(text):
    """Read a file of Keras with this text as its configuration."""
    with h5py.File(file := io.BytesIO(h5({}, WEIGHTS)), "r+") as out:
        out.attrs["model_config"] = text.replace(b"\0", b"").decode("latin-1")
    return keras(file.getvalue())


#: kind: (reader, a whole file, number of different messages that must be exceeded)
FILES = {
    "caffemodel": (lambda data: caffe.read(TEXT, data, "t", "w"), prototxt.WEIGHTS, 5),
    "prototxt": (lambda data: caffe.read(data, prototxt.WEIGHTS, "t", "w"), TEXT, 20),
    "pb": (tensorflow, DATA, 20),
    "t7": (lambda data: graph_of(data, "n.t7"), NETWORK, 20),
    "h5": (keras, H5, 5),
    "keras": (keras, KERAS, 5),
    "configuration": (configured, json.dumps(CONFIG).encode(), 10),
    "onnx": (lambda data: onnx(data, "m.onnx"), picture_model().SerializeToString(), 10),
}
SLOW = "h5", "keras", "configuration", "onnx"


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=pytest.mark.slow) if k in SLOW else k for k in FILES]
)
@pytest.mark.filterwarnings("ignore")  # about damaged numbers
def test_damaged_files(kind, count):
    read, data, least = FILES[kind]
    run_on_zeros(read(data))  # the file itself is read
    messages = messages_of_mutants(lambda mutant: run_on_zeros(read(mutant).eval()), data, count)
    assert len(messages) > least
