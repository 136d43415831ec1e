"""Model files: round trips, interrupted saves, and one sentence for each damaged file."""

from __future__ import annotations

import json
import os
import pickle

import cloudpickle
import fsspec
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from daskdl import nn
from daskdl.errors import ModelFileError
from daskdl.nn.core import modelfile
from daskdl.nn.core.modelfile import is_url


class Doubled(nn.Module):
    """A module of a module, a list and settings."""

    def __init__(self, inner, sizes, name="x", rate=0.5):
        self.inner = inner
        self.sizes, self.name, self.rate = sizes, name, rate

    def forward(self, x):
        return self.inner(x) * 2.0


def model():
    inner = nn.Sequential(nn.Linear(3, 4, seed=0), nn.ReLU(), nn.Linear(4, 1, seed=1))
    return Doubled(inner, [1, 2], name="y", rate=np.float64(0.25))


@pytest.fixture
def path(tmp_path):
    nn.save(model(), tmp_path / "m.safetensors", {"units": "mm h-1", "scale": [1, 2.5, None]})
    return tmp_path / "m.safetensors"


def rewrite(path, tensors=None, **header):
    """Write the file again, with another header or other tensors."""
    from safetensors import safe_open

    with safe_open(path, "numpy") as file:
        header = {**json.loads(file.metadata()[modelfile.KEY]), **header}
    tensors = load_file(path) if tensors is None else tensors
    save_file(tensors, path, {modelfile.KEY: json.dumps(header)})


def test_round_trip(path):
    loaded, x = nn.load(path), np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(loaded(x).data, model()(x).data)
    np.testing.assert_array_equal(loaded.flat, model().flat)
    assert (tuple(loaded.sizes), loaded.name, loaded.rate) == ((1, 2), "y", 0.25)
    assert nn.read_metadata(path) == {"units": "mm h-1", "scale": [1, 2.5, None]}
    assert nn.read_metadata(str(path)) == nn.read_metadata(path)


def test_others_may_read_a_model_as_any_new_file(path):
    (new := path.with_name("new")).touch()
    assert path.stat().st_mode == new.stat().st_mode


def test_any_safetensors_reader_sees_the_weights(path):
    assert set(load_file(path)) == {name for name, _ in model().named_parameters()}


def test_a_loaded_model_can_be_saved_again(path, tmp_path):
    nn.save(nn.load(path), tmp_path / "again.safetensors", nn.read_metadata(path))
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


def test_missing_file(tmp_path):
    with pytest.raises(ModelFileError, match=r"none\.safetensors: there is no such model file"):
        nn.load(tmp_path / "none.safetensors")


def with_header(text):
    """Return a function that gives a file another header."""
    return lambda path: save_file(load_file(path), path, {modelfile.KEY: text})


@pytest.mark.parametrize(
    "damage",
    [
        *(lambda path, n=n: path.write_bytes(path.read_bytes()[:n]) for n in (0, 4, 100, -1)),
        lambda path: path.write_text("time,rain\n2020-01-01,1.5\n" * 100),
        with_header("{"),
        with_header('{"format": ' + "[" * 100_000),
    ],
)
def test_damaged_file(path, damage):
    damage(path)
    for read in (nn.load, nn.read_metadata):
        with pytest.raises(ModelFileError, match=r"m\.safetensors: not a whole safetensors file"):
            read(path)


def asking(module, *arguments):
    """Return a function that makes a file describe another module."""
    return lambda path: rewrite(path, model=of(module, *arguments))


def of(module, *arguments):
    return {"module": module, "arguments": arguments, "keywords": {}}


def misspelt(path):
    config = modelfile.configuration(model(), {})
    config["arguments"][0]["arguments"][1]["module"] = "Swish9"
    rewrite(path, model=config)


def with_tensors(change):
    """Return a function that changes the tensors of a file, by their names."""

    def changed(path):
        tensors = load_file(path)
        change(tensors)
        rewrite(path, tensors)

    return changed


LARGER = "of the 21 numbers that the file holds, found"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda path: save_file({"w": np.zeros(3, np.float32)}, path),
         "expected a model of format daskdl-1, found None"),
        (with_header("[1]"), r"expected a model of format daskdl-1, found \[1\]"),
        (misspelt, "no module named 'Swish9' is known.*such as .*HardSwish"),
        (with_tensors(lambda ts: ts.update(extra=ts.pop("inner.layers.0.bias"))),
         r"extra is not.*inner\.layers\.0\.bias is missing"),
        (with_tensors(lambda ts: ts.update({"inner.layers.2.bias": np.zeros(7, np.float32)})),
         r"inner\.layers\.2\.bias has shape \(7,\), expected"),
        (with_tensors(lambda ts: ts.update({n: a.view(np.int32) for n, a in ts.items()})),
         "expected float32 numbers.* of int32; save the"),
        # 30,000 x 30,000 would take 7.2 GB while they are drawn: refused before they are made.
        (asking("Linear", 30_000, 30_000), LARGER),
        (asking("Embedding", 1 << 30, 8), LARGER),
        (asking("BatchNorm", 1 << 33), LARGER),
        (asking("LSTM", 8, 1 << 15), LARGER),
        (asking("Conv2d", 1 << 12, 1 << 12, 9), LARGER),
        (asking("Sequential", *[of("Linear", 4, 4)] * 1000), LARGER),
    ],
)  # fmt: skip
def test_a_file_of_another_model_is_refused(path, change, sentence):
    change(path)
    with pytest.raises(ModelFileError, match=sentence):
        nn.load(path)
    nn.Linear(10, 10)  # a limit ends with its file


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"module": "Linear"}, r"there is no 'arguments' in it"),
        ({"module": "ReLU", "arguments": [1], "keywords": {}}, "ReLU: "),
        ({"module": "Linear", "arguments": [2, -1], "keywords": {}}, "Linear: negative dimensions"),
        ({"module": "Linear", "arguments": [2, 1], "keywords": {"tilt": 1}}, "found tilt="),
        ({"module": "Linear", "arguments": [2, 1], "keywords": [1]}, "'items'"),
        (None, "expected a module, found None"),
    ],
)
def test_configuration_of_another_version(path, config, problem):
    rewrite(path, model=config, version="9.1")
    sentence = rf"m\.safetensors: its modules cannot .*{problem}.* written by daskdl 9\.1, and this"
    with pytest.raises(ModelFileError, match=sentence):
        nn.load(path)


def test_files_without_a_version_and_without_newer_arguments_are_loaded(path):
    config = {"module": "Linear", "arguments": [2, 3], "keywords": {}}  # neither bias nor seed
    tensors = {"weight": np.ones((3, 2), "f4"), "bias": np.arange(3, dtype="f4")}
    header = {"format": modelfile.FORMAT, "model": config, "metadata": {}}
    save_file(tensors, path, {modelfile.KEY: json.dumps(header)})
    assert nn.load(path)(np.ones((1, 2), "f4")).data.tolist() == [[2, 3, 4]]
    rewrite(path, model=7)
    with pytest.raises(ModelFileError, match=r"found 7\); it was written by an earlier daskdl"):
        nn.load(path)


@pytest.mark.parametrize("name", ["Mine", "moved.elsewhere.Mine"])
def test_a_users_class_is_found_by_its_name_if_its_module_is_another(name):
    class Mine(nn.Module):
        def __init__(self, by):
            self.by = by

    described = modelfile.configuration(Mine(2.0), {})
    assert described["module"] == f"{__name__}.Mine"
    assert type(modelfile.build(described | {"module": name}, "", {})) is Mine
    with pytest.raises(ModelFileError, match=r"no module named 'moved\.Linear' is known"):
        modelfile.build(described | {"module": "moved.Linear"}, "", {})


def test_a_class_of_a_notebook_stays_known_when_its_model_comes_back_from_workers(path):
    cell = """
class Shifted(nn.Module):
    def __init__(self, by):
        self.by = by

    def forward(self, x):
        return x + self.by
"""
    notebook = {"nn": nn, "__name__": "notebook_of_nobody"}
    try:
        exec(cell, notebook)
        nn.save(notebook["Shifted"](2.0), path)
        pickled = cloudpickle.dumps(notebook["Shifted"](2.0))
        assert type(pickle.loads(pickled)) is notebook["Shifted"]
        assert type(nn.load(path)) is notebook["Shifted"]
        exec(cell.replace("x +", "x -"), notebook)  # the cell was changed and run again
        assert nn.load(path)(np.zeros(1, "f4")).data.tolist() == [-2]
        exec("class Shifted(nn.Residual): pass", notebook)  # a class without methods
        made = notebook["Shifted"](nn.ReLU())
        assert nn.Module.registry["notebook_of_nobody.Shifted"] is type(made)
    finally:
        nn.Module.registry.pop("notebook_of_nobody.Shifted")


@pytest.mark.parametrize("kind", [RuntimeError, KeyboardInterrupt])
def test_interrupted_save_leaves_the_old_file_and_no_other(path, monkeypatch, kind):
    import safetensors.numpy

    whole = path.read_bytes()

    def interrupted(tensors, filename, metadata):
        filename.write_bytes(whole[:50])
        raise kind("power cut")

    monkeypatch.setattr(safetensors.numpy, "save_file", interrupted)
    with pytest.raises(kind):
        nn.save(nn.Linear(1, 1), path)
    assert path.read_bytes() == whole
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_the_new_file_appears_whole(path, monkeypatch):
    """The old file stays until the very last step, which the system does at once."""
    whole = path.read_bytes()

    def refused(source, target):
        assert nn.load(source).flat.size == 2
        assert path.read_bytes() == whole
        raise PermissionError("no")

    monkeypatch.setattr(os, "replace", refused)
    with pytest.raises(ModelFileError, match="expected a place that can be written, found no"):
        nn.save(nn.Linear(1, 1), path)
    assert path.read_bytes() == whole


def test_save_replaces_an_older_model(path):
    nn.save(nn.Linear(1, 1), path)
    assert isinstance(nn.load(path), nn.Linear)
    assert nn.read_metadata(path) == {}


def test_argument_that_is_no_plain_data_is_refused(tmp_path):
    unwritable = Doubled(nn.ReLU(), [object()])
    with pytest.raises(ModelFileError, match=r"Doubled: expected plain data or modules .* object"):
        nn.save(unwritable, tmp_path / "m.safetensors")
    assert not list(tmp_path.iterdir())


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(ModelFileError, match=r"expected the name of a file, found a folder; give"):
        nn.save(nn.Linear(2, 2), tmp_path)
    with pytest.raises(ModelFileError, match=r"expected an existing folder, found no .*nowhere"):
        nn.save(nn.ReLU(), tmp_path / "nowhere" / "m.safetensors")


def test_a_place_that_cannot_be_written_is_named():
    with pytest.raises(ModelFileError, match=r"/proc/m: expected a place that can be written"):
        nn.save(nn.Linear(1, 1), "/proc/m")


URL = "memory://models/small.safetensors"


@pytest.fixture
def memory():
    store = fsspec.filesystem("memory")
    yield store
    store.rm("/models", recursive=True) if store.exists("/models") else None


def test_a_model_travels_through_a_store(memory):
    model = nn.Sequential(nn.Linear(3, 4, seed=0), nn.ReLU(), nn.Linear(4, 1, seed=1))
    nn.save(model, URL, {"units": "mm h-1"})
    loaded = nn.load(URL)
    np.testing.assert_array_equal(loaded.flat, model.flat)
    assert nn.read_metadata(URL) == {"units": "mm h-1"}


def test_a_file_url_is_a_file(tmp_path):
    nn.save(nn.Linear(2, 1, seed=0), f"file://{tmp_path}/m.safetensors")
    same = nn.load(tmp_path / "m.safetensors")
    np.testing.assert_array_equal(same.flat, nn.Linear(2, 1, seed=0).flat)


def test_errors_of_a_store_name_the_url(memory):
    with pytest.raises(
        ModelFileError, match=f"^{URL}: there is no such model file; see the bucket"
    ):
        nn.load(URL)
    memory.pipe("/models/small.safetensors", b"not a model")
    with pytest.raises(ModelFileError, match=f"^{URL}: not a whole safetensors file"):
        nn.load(URL)
    with pytest.raises(ModelFileError, match=r"^nowhere://x/y: the store cannot be reached"):
        nn.load("nowhere://x/y")
    with pytest.raises(ModelFileError, match="expected plain data"):
        nn.save(nn.Sequential(nn.Linear(2, 1), _Odd(object())), URL)
    assert memory.cat("/models/small.safetensors") == b"not a model"  # nothing half-written


def test_names_with_a_protocol_are_urls(tmp_path):
    assert is_url("s3://bucket/m.safetensors")
    assert not is_url(tmp_path / "m.safetensors")


class _Odd(nn.Module):
    def __init__(self, thing):
        self.thing = thing
