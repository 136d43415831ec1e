"""`daskdl show` tells what a model file of any kind holds."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

import daskdl
from daskdl import nn
from daskdl.cli import app
from daskdl.console import run
from daskdl.errors import ModelFileError
from daskdl.interop.description import describe
from tests.daskdl.interop.caffe.files import caffemodel, layer
from tests.daskdl.interop.caffe.files import network as prototxt
from tests.daskdl.interop.keras.files import h5, keras, sequential
from tests.daskdl.interop.onnx.models import picture_model
from tests.daskdl.interop.tensorflow.files import network
from tests.daskdl.interop.torch7.files import nn as torch7
from tests.daskdl.interop.torch7.files import t7

CONV = "convolution_param { num_output: 4 kernel_size: 3 bias_term: false }"
DENSE = sequential([("Dense", {"units": 2, "activation": "linear", "use_bias": True})], [3])
LINEAR = torch7("Linear", weight=np.ones((2, 3)), bias=np.ones(2))
WEIGHTS = {"l0": [np.ones((3, 2), "f4"), np.ones(2, "f4")]}


def caffe(folder):
    (folder / "n.prototxt").write_text(prototxt(layer("Convolution", CONV)))
    (folder / "n.caffemodel").write_bytes(caffemodel({"l": [np.ones((4, 3, 3, 3), "f4")] * 1}))
    return folder / "n.prototxt"


def written(name, data):
    def write(folder):
        (folder / name).write_bytes(data)
        return folder / name

    return write


def safetensors(folder):
    save_file({"a": np.ones((2, 3), "f4")}, folder / "other.safetensors")
    return folder / "other.safetensors"


def own(folder):
    daskdl.save(nn.Linear(3, 2), folder / "own.safetensors")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "parameters", "text"),
    [
        (own, 8, "Linear(3, 2)"),
        (safetensors, 6, "  a: [2, 3]"),
        (written("m.onnx", picture_model().SerializeToString()), None, "Graph"),
        (written("m.keras", keras(DENSE, WEIGHTS)), 8, "Graph"),
        (written("m.h5", h5(DENSE, WEIGHTS)), 8, "Graph"),
        (written("m.t7", t7(LINEAR)), 8, "Graph"),
        (written("m.pb", network("MatMul", [np.ones((8, 2), "f4")], (-1, 8))), 16, "Graph"),
        (caffe, 108, "Graph"),
    ],
    ids=["own", "safetensors", "onnx", "keras", "h5", "t7", "pb", "caffe"],
)
def test_each_kind_is_told(make, parameters, text, tmp_path, capsys):
    path = make(tmp_path)
    assert run(app, ["show", str(path)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert text in out
    assert parameters is None or f"parameters: {parameters}\n" in out
    assert run(app, ["show", str(path), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert sum(int(np.prod(s)) for s in facts["shapes"].values()) == facts["parameters"]


def test_weights_of_pytorch(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save(torch.nn.Linear(3, 2).state_dict(), tmp_path / "m.pt")
    facts = describe(tmp_path / "m.pt")
    assert facts["kind"] == "weights of PyTorch (pt)"
    assert facts["shapes"] == {"weight": [2, 3], "bias": [2]}


def test_a_folder_of_none_or_several_is_refused(tmp_path):
    with pytest.raises(ModelFileError, match=r"one \*\.safetensors, found 0 in it; name the file"):
        describe(tmp_path)


def test_a_model_of_ones_own_class_is_shown_by_its_arrays(tmp_path, monkeypatch):
    class NobodyKnows(nn.Module):
        def __init__(self):
            self.inner = nn.Linear(3, 2)

    path = tmp_path / "own.safetensors"
    daskdl.save(NobodyKnows(), path, {"note": "mine"})
    monkeypatch.delitem(nn.Module.registry, "NobodyKnows")
    found = describe(path)
    assert found["kind"].startswith("model of daskdl, of modules whose code is elsewhere")
    assert found["shapes"] == {"inner.bias": [2], "inner.weight": [2, 3]}
    assert found["parameters"] == 8
    assert found["metadata"] == {"note": "mine"}
