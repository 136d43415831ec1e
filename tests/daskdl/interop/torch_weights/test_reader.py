"""Weights that PyTorch saved: the same numbers from both formats, and nothing else is read."""

from __future__ import annotations

import io
import json
import pickle
import zipfile

import numpy as np
import pytest

from daskdl.errors import DataError
from daskdl.interop import read
from tests.daskdl.interop.checks import messages_of_mutants


def state(torch):
    """Return tensors of all kinds: views, shared storages, scalars, empty ones."""
    base = torch.arange(24.0).reshape(4, 6)
    return {
        "plain": base,
        "turned": base.T,
        "part": base[1:3, ::2],
        "half": base.half(),
        "brain": base.bfloat16(),
        "double": base.double(),
        "ids": torch.arange(5),
        "bytes": torch.arange(5, dtype=torch.uint8),
        "yes": torch.tensor([True, False]),
        "scalar": torch.tensor(2.5),
        "none": torch.zeros(0, 3),
        "inner": {"list": [torch.ones(2), torch.zeros(1)]},
        "epoch": 3,
    }


EXPECTED = {"plain", "turned", "part", "half", "brain", "double", "ids", "bytes", "yes", "scalar",
            "none", "inner.list.0", "inner.list.1"}  # fmt: skip


@pytest.mark.parametrize("zipped", [True, False])
def test_both_formats(tmp_path, torch, zipped):
    path = tmp_path / "w.pt"
    torch.save(state(torch), path, _use_new_zipfile_serialization=zipped)
    weights = read(path)
    assert weights.keys() == EXPECTED
    right = state(torch)
    for name, array in weights.items():
        if name.startswith("inner"):
            continue
        expected = right[name].float() if name == "brain" else right[name]
        np.testing.assert_array_equal(array, expected.numpy())
        assert array.dtype == expected.numpy().dtype
    assert read(path, "inner.list.").keys() == {"0", "1"}


@pytest.mark.parametrize("zipped", [True, False])
def test_state_dicts_of_modules(tmp_path, torch, zipped):
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    torch.save({"state_dict": net.state_dict(), "lr": 0.1}, tmp_path / "w.pth",
               _use_new_zipfile_serialization=zipped)  # fmt: skip
    weights = read(tmp_path / "w.pth", "state_dict.")
    assert weights.keys() == net.state_dict().keys()
    for name, tensor in net.state_dict().items():
        np.testing.assert_array_equal(weights[name], tensor.numpy())


def test_safetensors(tmp_path):
    from safetensors.numpy import save_file

    save_file({"a.weight": np.arange(6.0, dtype="f4").reshape(2, 3)}, tmp_path / "w.safetensors")
    np.testing.assert_array_equal(read(tmp_path / "w.safetensors")["a.weight"][1], [3, 4, 5])


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int16"])
@pytest.mark.parametrize("ending", ["safetensors", "pt", "old.pt"])
def test_numbers_that_numpy_has_no_dtype_for(tmp_path, torch, kind, ending):
    from safetensors.torch import save_file

    bits = torch.arange(256, dtype=torch.uint8)
    numbers = bits.view(getattr(torch, kind)) if kind.startswith("float8") else bits.float() / 8
    tensors = {"w": numbers.to(getattr(torch, kind)).reshape(2, -1)}
    if ending == "safetensors":
        save_file(tensors, tmp_path / "w.safetensors")
    else:
        zipped = ending == "pt"
        torch.save(tensors, tmp_path / f"w.{ending}", _use_new_zipfile_serialization=zipped)
    array = read(tmp_path / f"w.{ending}")["w"]
    np.testing.assert_array_equal(array.astype("f4"), tensors["w"].float().numpy())


@pytest.mark.parametrize("zipped", [True, False])
def test_expanded_tensors(tmp_path, torch, zipped):
    tensors = {
        "one": torch.tensor(1.5).expand(3, 2),
        "row": torch.arange(3.0).expand(4, 3),
        "column": torch.arange(3.0)[:, None].expand(3, 5),
    }
    torch.save(tensors, tmp_path / "w.pt", _use_new_zipfile_serialization=zipped)
    weights = read(tmp_path / "w.pt")
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(weights[name], tensor.numpy())
    torch.save({"w": torch.zeros(1).expand(1 << 40)}, tmp_path / "w.pt")
    with pytest.raises(DataError, match="goes beyond its storage"):
        read(tmp_path / "w.pt")


def test_an_index_names_the_files_of_large_models(tmp_path):
    from safetensors.numpy import save_file

    save_file({"a": np.ones(2, "f4")}, tmp_path / "m-1.safetensors")
    save_file({"b": np.zeros(3, "f4")}, tmp_path / "m-2.safetensors")
    index = tmp_path / "m.safetensors.index.json"

    def check_refused(places, match):
        index.write_text(json.dumps({"weight_map": places}))
        with pytest.raises(DataError, match=match):
            read(index)

    index.write_text(json.dumps({"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}}))
    assert {name: a.shape for name, a in read(index).items()} == {"a": (2,), "b": (3,)}
    check_refused({"a": "m-1.safetensors", "b": "m-1.safetensors"}, "expected 'b' in m-1")
    check_refused({"a": "m-3.safetensors"}, "there is no such file of weights")
    check_refused({"a": "../m-1.safetensors"}, "expected files beside it")
    check_refused(["a"], "not valid index of files")


class Malicious:
    """Pickles as a call that would write a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("zipped", [True, False])
def test_nothing_of_a_file_is_run(tmp_path, torch, zipped):
    torch.save({"w": torch.ones(2), "evil": Malicious(tmp_path / "trace")}, tmp_path / "w.pt",
               _use_new_zipfile_serialization=zipped)  # fmt: skip
    with pytest.raises(DataError, match=r"it makes a (_?io|builtins)\.open, which is no weights"):
        read(tmp_path / "w.pt")
    assert not (tmp_path / "trace").exists()


def test_whole_modules_and_programs_are_refused(tmp_path, torch):
    torch.save(torch.nn.Linear(2, 2), tmp_path / "w.pt")
    with pytest.raises(DataError, match="Linear, which is no weights; only tensors in plain"):
        read(tmp_path / "w.pt")
    with zipfile.ZipFile(tmp_path / "s.pt", "w") as archive:
        for name in ("s/data.pkl", "s/constants.pkl", "s/code/__torch__.py"):
            archive.writestr(name, b"")
    with pytest.raises(DataError, match="it is of TorchScript, a program"):
        read(tmp_path / "s.pt")
    with pytest.raises(DataError, match="there is no such file"):
        read(tmp_path / "none.pt")


@pytest.mark.parametrize("zipped", [True, False])
def test_damage_raises_one_line(tmp_path, monkeypatch, torch, zipped):
    monkeypatch.chdir(tmp_path)
    saved = io.BytesIO()
    torch.save(state(torch), saved, _use_new_zipfile_serialization=zipped)

    def attempt(data):
        (tmp_path / "w.pt").write_bytes(data)
        read("w.pt")

    assert len(messages_of_mutants(attempt, saved.getvalue(), 200, DataError)) > 8


def saved_pickle(path, data):
    """Write a zip as torch does, around a pickle and one storage of four numbers."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("w/data.pkl", data)
        archive.writestr("w/data/0", np.arange(4, dtype="f4").tobytes())


class Storage:
    """A storage, which is pickled as a persistent id."""


def tensor_pickle(offset=0, shape=(4,), stride=(1,), count=4):
    """Return a pickle of a tensor, made by hand."""
    pid = ("storage", "FloatStorage", "0", "cpu", count)
    out = io.BytesIO()

    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            return pid if isinstance(value, Storage) else None

    Pickler(out, 2).dump((Storage(), offset, shape, stride, False, {}))
    arguments = out.getvalue()[2:-1]
    return b"\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n" + arguments + b"Rs."


def test_places_are_checked(tmp_path):
    path = tmp_path / "w.pt"
    saved_pickle(path, tensor_pickle())
    np.testing.assert_array_equal(read(path)["w"], [0, 1, 2, 3])
    for arguments, words in (
        ({"offset": 1}, "goes beyond its storage of 4"),
        ({"shape": (1 << 40,), "stride": (0,)}, "goes beyond its storage of 4"),
        ({"shape": (3,), "stride": (-1,)}, "expected a tensor's place"),
        ({"shape": (2, 2), "stride": (1,)}, "expected a tensor's place"),
        ({"count": 1 << 40}, "expected 4398046511104 bytes, found 16"),
    ):
        saved_pickle(path, tensor_pickle(**arguments))
        with pytest.raises(DataError, match=words):
            read(path)


@pytest.mark.slow
def test_hostile_pickles(tmp_path):
    path = tmp_path / "w.pt"
    many = b"\x80\x02]q\x00" + b"".join(
        b"](" + b"h%c" % i * 10 + b"eq%c" % (i + 1) for i in range(20)
    )
    saved_pickle(path, many + b".")
    with pytest.raises(DataError, match="hold each other more than"):
        read(path)
    saved_pickle(path, b"\x80\x02]r\xff\xff\xff\x7f.")  # a memo of two thousand million
    with pytest.raises(DataError, match="made to fill the memory"):
        read(path)
    saved_pickle(path, b"\x80\x02X\xff\xff\xff\x7fa.")
    with pytest.raises(DataError, match="damaged"):
        read(path)
    saved_pickle(path, b"\x80\x02(cos\nsystem\nX\x02\x00\x00\x00lso.")
    with pytest.raises(DataError, match="a pickle of weights has no OBJ"):
        read(path)


@pytest.mark.slow
def test_zip_bombs(tmp_path):
    path = tmp_path / "w.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("w/data.pkl", b"\0" * 50_000_000)
    with pytest.raises(DataError, match="expected bytes as they are"):
        read(path)
