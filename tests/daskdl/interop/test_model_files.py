"""One `daskdl.load` for model files of all formats."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import daskdl
from daskdl import nn
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
