"""The page about parts of one's own: its code is short, and trains on workers to the same bits."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from daskdl import nn
from daskdl.errors import ModelFileError
from tests.daskdl.gradients import check_gradient, normal
from tests.daskdl.lossmeans import check_cut, check_slopes

PAGE = Path(__file__).resolve().parents[2] / "docs" / "own_parts.md"
CELLS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)

#: Code that a user would write below; it prints a digest for each engine.
RUN = """
from distributed import Client

with Client(ADDRESS) as client:
    for engine in ("graph", "gang"):
        print("digest", train(log_cosh, client=client, engine=engine))
    print("digest", train(pinball, client=client, engine=engine))
"""


@pytest.fixture(scope="module")
def page() -> Any:
    """Run the page's cells in a module that workers could not import."""
    page = ModuleType("page_about_own_parts")
    for cell in CELLS:
        exec(compile(cell, PAGE, "exec"), page.__dict__)
    yield page
    nn.Module.registry.pop(page.Gate.registered)


@pytest.fixture(scope="module")
def digests(page: Any) -> list[str]:
    """Return the digests that :data:`RUN` has to print, computed in this process."""
    digest = page.train(page.log_cosh)
    return [digest, digest, page.train(page.pinball)]


def printed(text: str) -> list[str]:
    return re.findall(r"^digest (\w{64})$", text, re.M)


def test_an_operation_a_layer_and_a_loss_take_less_than_15_lines():
    for cell, name in zip(CELLS, ("def squareplus", "class Gate", "def log_cosh"), strict=False):
        assert name in cell
        assert sum(bool(line.strip()) for line in cell.splitlines()) < 15, name


def test_gradients_are_right(page):
    check_gradient(page.squareplus, normal(3, 4))
    check_slopes(page.log_cosh, normal(3, 4), constants=(normal(3, 4, seed=1),))
    check_cut(page.log_cosh, normal(5, 2), normal(5, 2, seed=1))
    d = normal(3, 4)
    np.testing.assert_allclose(float(page.log_cosh(d, 0 * d)), np.log(np.cosh(d)).mean())


def test_the_layer_is_saved_and_an_unregistered_one_is_named(page, tmp_path):
    layer, x = page.Gate(3, seed=0), normal(2, 3).astype("f4")
    assert layer(x).dtype == np.float32
    assert [name for name, _ in layer.named_parameters()] == [
        "share",
        "linear.weight",
        "linear.bias",
    ]
    nn.save(layer, tmp_path / "gate.safetensors")
    np.testing.assert_array_equal(nn.load(tmp_path / "gate.safetensors")(x).data, layer(x).data)
    gate = nn.Module.registry.pop(page.Gate.registered)
    try:
        with pytest.raises(ModelFileError, match=r"no module named '.*\.Gate' is known"):
            nn.load(tmp_path / "gate.safetensors")
    finally:
        nn.Module.registry[gate.registered] = gate


@pytest.mark.slow
def test_a_script_trains_what_it_defines_on_workers(client, digests, tmp_path):
    script = tmp_path / "own.py"
    address = f"ADDRESS = {client.scheduler.address!r}\n"
    main = (address + RUN).replace("\n", "\n    ")
    script.write_text("\n".join([*CELLS, f'if __name__ == "__main__":\n    {main}']))
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=250, check=False
    )
    assert printed(done.stdout) == digests, done.stderr


@pytest.mark.long
def test_a_notebook_trains_what_it_defines_on_workers(client, digests, tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    pytest.importorskip("ipykernel")
    from jupyter_client.manager import start_new_kernel

    output: list[str] = []

    def collect(message: dict[str, Any]) -> None:
        content = message["content"]
        output.append(content.get("text", "") + "\n".join(content.get("traceback", ())))

    manager, kernel = start_new_kernel(kernel_name="python3", env=dict(os.environ))
    try:
        for cell in (*CELLS, f"ADDRESS = {client.scheduler.address!r}\n", RUN):
            reply = kernel.execute_interactive(cell, output_hook=collect, timeout=250)
            assert reply["content"]["status"] == "ok", "".join(output)
    finally:
        kernel.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()
    assert printed("".join(output)) == digests
