"""`daskdl show` describes model files of all kinds."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import save_file

import daskdl
from daskdl import SampleSet, Trainer, nn, optim
from daskdl.cli import app
from daskdl.console import run
from daskdl.errors import ModelFileError, ShapeError
from daskdl.interop.description import describe
from daskdl.interop.guard import DAMAGE, existing, reading
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


def saved_linear(folder):
    daskdl.save(nn.Linear(3, 2), folder / "own.safetensors")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "parameters", "text"),
    [
        (saved_linear, 8, "Linear(3, 2)"),
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
def test_each_kind_is_described(make, parameters, text, tmp_path, capsys):
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
    monkeypatch.delitem(nn.Module.registry, NobodyKnows.registered)
    facts = describe(path)
    assert facts["kind"].startswith("model of daskdl, of modules whose code is elsewhere")
    assert facts["shapes"] == {"inner.bias": [2], "inner.weight": [2, 3]}
    assert facts["parameters"] == 8
    assert facts["metadata"] == {"note": "mine"}


def test_a_file_is_read_by_its_ending(tmp_path):
    onnx.save(picture_model(), tmp_path / "model.onnx")
    assert isinstance(daskdl.load(tmp_path / "model.onnx"), nn.Graph)
    layer = nn.Linear(3, 2, seed=0)
    daskdl.save(layer, tmp_path / "layer.safetensors")
    x = np.ones((1, 3), "f4")
    np.testing.assert_array_equal(
        daskdl.load(tmp_path / "layer.safetensors")(x).data, layer(x).data
    )
    with pytest.raises(ModelFileError, match="there is no such ONNX file"):
        daskdl.load(tmp_path / "none.onnx")


def test_loaded_models_are_in_evaluation_until_they_are_trained(tmp_path):
    onnx.save(picture_model(), tmp_path / "model.onnx")
    x = np.random.default_rng(0).normal(size=(5, 2, 8, 8)).astype("f4")
    net = daskdl.load(tmp_path / "model.onnx")
    before = net.predict(x)
    np.testing.assert_allclose(net(x).data, before, rtol=1e-4)
    np.testing.assert_array_equal(net.predict(x), before)
    daskdl.save(nn.Sequential(nn.Linear(3, 2), nn.BatchNorm(2)), tmp_path / "ours.safetensors")
    ours = daskdl.load(tmp_path / "ours.safetensors")
    assert not ours.training
    rows = np.random.default_rng(0).normal(size=(8, 3)).astype("f4")
    trainer = Trainer(ours, nn.MSELoss(), optim.SGD(0.1), 0)
    trainer.fit(SampleSet.from_arrays(x=rows, y=rows[:, :2]), epochs=1, progress=False)
    assert trainer.model.state_dict()["layers.1.running_mean"].any()  # trained as ever


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 12\n"


@pytest.mark.parametrize(("name", "content", "sentence"), [
    ("m.tflite", b"\x1c\0\0\0TFL3", "a model of TFLite; python -m tf2onnx"),
    ("unnamed", b"\x1c\0\0\0TFL3", "a model of TFLite"),
    ("m.gguf", b"GGUF\x03", r"llama\.cpp"),
    ("model.470", b"\xac\xed\x00\x05sr", "object of Java.*saveCaffe"),
    ("m.mlmodel", b"\x08\x04", "Core ML"),
    ("state.pt", b"PK\x03\x04", r"of PyTorch.*daskdl\.interop\.read"),
    ("old.pth", b"\x80\x02\x8a", r"of PyTorch.*daskdl\.interop\.read"),
    ("run.ckpt", b"PK\x03\x04", r"of PyTorch.*daskdl\.interop\.read"),
    ("m.safetensors.index.json", b"{}", r"index.*daskdl\.interop\.read"),
    ("w.dat", b"\x89HDF\r\n\x1a\n", r"of HDF5; call it \.h5 if Keras wrote it"),
    ("notes.md", b"# Notes and", r"begins with b'# Notes '.*lists the formats"),
    *((f"pointer.{end}", POINTER, r"pointer of git-lfs.*git lfs pull")
      for end in ("onnx", "safetensors", "h5", "keras", "pb", "prototxt", "t7", "pt")),
    *((f"page.{end}", text, "a web page or an error in JSON, not the .*; read it, and fetch the")
      for end in ("onnx", "safetensors", "h5", "keras", "pb", "prototxt", "t7")
      for text in (b"\n<!DOCTYPE html><html>", b'{"error":"Repository not found"}',
                   b"<?xml version='1.0'?><Error>", b'["not found", 404, "again"]')),
])  # fmt: skip
def test_whole_files_of_other_kinds_are_named(tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content + bytes(80) * (content != POINTER))
    with pytest.raises(ModelFileError, match=sentence) as error:
        daskdl.load(tmp_path / name)
    assert "copy or save it again" not in str(error.value)


def _zip_of(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, b"1")
    return file.getvalue()


#: Beginnings of whole files, which no reader of another kind may call damaged.
WHOLE = {
    "TFLite": b"\x1c\0\0\0TFL3", "GGUF": b"GGUF\x03", "Java": b"\xac\xed\x00\x05sr",
    "numpy": b"\x93NUMPY\x01\0", "gzip": b"\x1f\x8b\x08\0", "picture": b"\x89PNG\r\n\x1a\n",
    "PDF": b"%PDF-1.7\n", "pickle": b"\x80\x04\x95", "zip": _zip_of("a.txt"),
    "PyTorch": _zip_of("m/data.pkl"), "TorchScript": _zip_of("m/code/__torch__.py"),
}  # fmt: skip


@given(
    kind=st.sampled_from(sorted(WHOLE)),
    rest=st.binary(min_size=64, max_size=200),
    end=st.sampled_from(["onnx", "h5", "hdf5", "pb", "t7", "caffemodel", "safetensors", "model"]),
)
def test_whole_files_of_other_kinds_are_not_called_damaged(tmp_path_factory, kind, rest, end):
    path = tmp_path_factory.mktemp("whole") / f"file.{end}"
    path.write_bytes(WHOLE[kind] + rest * (WHOLE[kind][:2] != b"PK"))
    with pytest.raises(ModelFileError) as error:
        daskdl.load(path)
    assert "again" not in str(error.value)
    assert "damaged" not in str(error.value)
    assert (kind if WHOLE[kind][:2] != b"PK" else "") in str(error.value)


def test_long_names_and_large_tables_are_of_no_other_kind(tmp_path):
    """Their first bytes are printable, or could begin a file of safetensors."""
    name = b"x" * 90
    node = b"\n%c%b\x12\x0bPlaceholder" % (len(name), name)
    (tmp_path / "net.pb").write_bytes(b"\n%c" % len(node) + node)
    (tmp_path / "net.t7").write_bytes(np.array([3, 1, 123] + [0] * 20, "<i4").tobytes())
    for path in tmp_path.iterdir():
        with pytest.raises(ModelFileError) as error:
            daskdl.load(path)
        assert ": it is " not in str(error.value)


@pytest.mark.parametrize(
    "content", [b"[PAD]\n[unused0]\n", b"{\x01\0\0\0\0\0\0{}", b"#version: 0.2"]
)
def test_files_that_begin_like_a_web_page_are_read(tmp_path, content):
    (tmp_path / "vocab.txt").write_bytes(content)
    assert existing(tmp_path / "vocab.txt", "file").read_bytes() == content


def test_programs_of_torch_and_folders(tmp_path):
    with zipfile.ZipFile(tmp_path / "script.pt", "w") as archive:
        archive.writestr("script/code/__torch__.py", "")
    with pytest.raises(ModelFileError, match=r"TorchScript.*torch\.onnx\.export"):
        daskdl.load(tmp_path / "script.pt")
    with pytest.raises(ModelFileError, match="found a folder"):
        daskdl.load(tmp_path)
    for ending in ("", ".onnx"):
        folder = tmp_path / f"saved{ending}"
        folder.mkdir()
        (folder / "saved_model.pb").write_bytes(b"\x08\x01")
        with pytest.raises(ModelFileError, match=r"SavedModel.*tf2onnx"):
            daskdl.load(folder)


def test_readers_are_imported_on_first_use():
    program = "import daskdl; print(daskdl.interop.onnx.save, daskdl.interop.keras.load)"
    process = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        daskdl.interop.nothing  # noqa: B018


@pytest.mark.parametrize("kind", [*DAMAGE, KeyError, ZeroDivisionError])
def test_damage_names_the_file(kind):
    refusal = pytest.raises(ModelFileError, match=r"^net\.pb: damaged or not valid ONNX \(")
    with refusal, reading("net.pb", "ONNX"):
        raise kind("what")


def test_our_messages_name_the_file_once():
    with pytest.raises(ModelFileError, match=r"^net\.pb: Linear: too wide$"), reading("net.pb"):
        raise ShapeError("Linear: too wide")
    with pytest.raises(ModelFileError, match=r"^said already$"), reading("net.pb"):
        raise ModelFileError("said already")


def test_other_errors_pass():
    with pytest.raises(MemoryError), reading("net.pb"):
        raise MemoryError
