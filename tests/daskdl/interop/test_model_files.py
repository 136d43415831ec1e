"""One `daskdl.load` for model files of all formats."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import numpy as np
import onnx
import pytest

import daskdl
from daskdl import SampleSet, Trainer, nn, optim
from daskdl.errors import ModelFileError
from tests.daskdl.interop.onnx.models import picture_model


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


def test_what_is_loaded_is_in_evaluation_until_it_is_trained(tmp_path):
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
])  # fmt: skip
def test_whole_files_of_other_kinds_are_called_by_their_names(tmp_path, name, content, sentence):
    (tmp_path / name).write_bytes(content + bytes(80) * (content != POINTER))
    with pytest.raises(ModelFileError, match=sentence) as told:
        daskdl.load(tmp_path / name)
    assert "copy or save it again" not in str(told.value)


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


def test_readers_are_there_without_imports_of_their_own():
    program = "import daskdl; print(daskdl.interop.onnx.save, daskdl.interop.keras.load)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        daskdl.interop.nothing  # noqa: B018
