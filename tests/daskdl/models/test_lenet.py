"""LeNet-5: the count of its parameters, a step, its file."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from daskdl import save
from daskdl.models import LeNet5
from tests.daskdl.models.steps import file_brings_back, gradient_is_right

X = np.random.default_rng(0).normal(size=(4, 28, 28, 1)).astype(np.float32)


def test_has_the_parameters_of_the_paper_with_full_connections():
    assert LeNet5().flat.size == 61_706
    assert LeNet5()(X).shape == (4, 10)


def test_a_step_does_what_its_gradient_says():
    gradient_is_right(LeNet5(), X, 10)


def test_model_file_brings_it_back(tmp_path):
    file_brings_back(LeNet5(classes=3, seed=4), X, tmp_path / "m.safetensors")


def test_load_knows_the_zoo_without_an_import_of_it(tmp_path):
    save(LeNet5(), tmp_path / "m.safetensors")
    code = f"import daskdl; print(type(daskdl.load({str(tmp_path / 'm.safetensors')!r})).__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "LeNet5"
