"""ONNX' own backend tests: all of every operator that is listed, and whole networks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ci import onnx_page
from daskdl.interop import onnx as interop
from daskdl.tensor import no_grad

#: Their operators are of text, or take gradients inside of a graph.
LEFT = ("strnorm", "gradient_of")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_all_node_cases_of_listed_operators_pass_and_the_page_is_true():
    import onnx

    failed = onnx_page.failures(onnx_page.node_cases())
    assert [name for name, reason in failed.items() if reason is None] == []
    text = onnx_page.PAGE.read_text(encoding="utf-8")
    if f"onnx {onnx.__version__} " in text:  # another version has other tests
        assert onnx_page.page(failed) == text


@pytest.mark.parametrize("kind", ["simple", "pytorch-operator", "pytorch-converted"])
def test_stored_cases(kind):
    cases = [c for c in onnx_page.stored_cases(kind) if not any(n in c.name for n in LEFT)]
    assert len(cases) >= 15
    for case in cases:
        onnx_page.check(case)


def light():
    import onnx.backend.test

    folder = Path(onnx.backend.test.__file__).parent / "data" / "light"
    return sorted(folder.glob("*.onnx"))


@pytest.mark.parametrize("path", light(), ids=lambda path: path.stem)
@pytest.mark.slow
def test_networks_give_their_stored_outputs(path):
    from onnx import TensorProto, numpy_helper

    graph = interop.load(path).eval()
    inputs = []
    for _, dtype, shape in graph.inputs:
        lengths = [n or 1 for n in shape]
        size = int(np.prod(lengths))
        inputs.append((np.arange(size) / size).astype(dtype).reshape(lengths))
    with no_grad():
        found = graph(*inputs).data
    stored = path.with_name(f"{path.stem}_output_0.pb").read_bytes()
    right = numpy_helper.to_array(TensorProto.FromString(stored))
    np.testing.assert_allclose(found, right, rtol=1e-3, atol=1e-7)
