"""Model files behind URLs: what is sent comes back, and what goes wrong names the URL."""

from __future__ import annotations

import fsspec
import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ModelFileError
from daskdl.nn.core.model_urls import is_url

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


def test_what_goes_wrong_names_the_url(memory):
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
