"""Every layer has the same bits in the process that compiles its kernels and in those that load."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
#: Results and gradients of every registered layer in float32, a digest for each.
PROGRAM = """
import hashlib
import numpy as np
from daskdl import nn
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.tensor import Tensor
from tests.daskdl.gradients import as_tuple
from tests.daskdl.nn.recipes import FLOATS, OTHERS, inputs_of

for name, (make, *_) in sorted({**FLOATS, **OTHERS}.items()):
    layer = make()
    found = hashlib.sha256()
    inputs = [x.astype("f4") if x.dtype == np.float64 else x for x in inputs_of(name)]
    tensors = [Tensor(x, requires_grad=True) if x.dtype.kind == "f" else x for x in inputs]
    with thread_budget(2), nn.drawing(1):
        results = as_tuple(layer(*tensors))
        for result in results:
            found.update(np.ascontiguousarray(result.data).tobytes())
        if name in FLOATS:
            for result in results:
                if result.data.dtype.kind == "f" and result._node is not None:
                    result.backward(np.linspace(-1, 1, result.data.size).reshape(result.shape))
                    break
            found.update(layer.flat_grad.tobytes())
            for tensor in tensors:
                if isinstance(tensor, Tensor) and tensor.grad is not None:
                    found.update(np.ascontiguousarray(tensor.grad).tobytes())
    print(name, found.hexdigest()[:16])
"""


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_all_layers_are_the_same_cold_and_warm(tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)}
    cold, warm = (
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", PROGRAM], env=environment, cwd=ROOT, check=True,
            capture_output=True, text=True,
        ).stdout.splitlines()
        for _ in range(2)
    )  # fmt: skip
    assert len(cold) > 100
    assert [pair for pair in zip(cold, warm, strict=True) if pair[0] != pair[1]] == []
