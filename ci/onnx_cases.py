"""ONNX' own backend tests, run through daskdl.interop.onnx."""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from daskdl.errors import DaskdlError, ModelFileError
from daskdl.interop.onnx.reader import from_proto
from daskdl.nn.operators import TABLE
from daskdl.tensor import Tensor, no_grad


class Case(NamedTuple):
    """One test: a model, and what it makes of inputs."""

    name: str
    model: Any
    sets: list[tuple[list[Any], list[Any]]]
    rtol: float
    atol: float


@functools.cache
def node_cases() -> tuple[Case, ...]:
    """Return the node tests that are not expanded into simpler operators."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = load_model_tests(kind="node")
    return tuple(
        Case(c.name, c.model, c.data_sets or [], c.rtol, c.atol)
        for c in found
        if "expanded" not in c.name
    )


def stored_cases(kind: str) -> Iterator[Case]:
    """Yield the tests of a kind that lie in files: simple, pytorch-operator, pytorch-converted."""
    import onnx
    from onnx.backend.test.loader import load_model_tests

    for case in load_model_tests(kind=kind):
        folder = Path(case.model_dir)
        model = onnx.load(folder / "model.onnx")
        sets = []
        for data in sorted(folder.glob("test_data_set_*")):
            inputs = _stored(data, "input", model.graph.input)
            sets.append((inputs, _stored(data, "output", model.graph.output)))
        yield Case(case.name, model, sets, case.rtol, case.atol)


def _stored(folder: Path, kind: str, values: Any) -> list[Any]:
    import onnx
    from onnx import numpy_helper

    found = []
    for i, value in enumerate(values):
        path = folder / f"{kind}_{i}.pb"
        if not path.is_file():
            break
        data = path.read_bytes()
        if value.type.HasField("sequence_type"):
            found.append(numpy_helper.to_list(onnx.SequenceProto.FromString(data)))
        elif value.type.HasField("optional_type"):
            found.append(numpy_helper.to_optional(onnx.OptionalProto.FromString(data)))
        else:
            found.append(numpy_helper.to_array(onnx.TensorProto.FromString(data)))
    return found


def operators(model: Any) -> set[str]:
    """Return the operators of a model, with their domain where it is not ONNX' own."""
    return {
        node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}:{node.op_type}"
        for node in model.graph.node
    }


def check(case: Case) -> None:
    """Raise AssertionError, or what daskdl raises, unless a case's outputs come out."""
    from onnx import TensorProto, numpy_helper

    def plain(value: Any) -> Any:
        return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value

    graph = from_proto(case.model, case.name).eval()
    for given, wanted in case.sets:
        inputs, expected = [plain(v) for v in given], [plain(v) for v in wanted]
        with no_grad():
            found = graph(*inputs)
        results = found if isinstance(found, tuple) else (found,)
        assert len(results) == len(expected)
        for ours, right in zip(results, expected, strict=True):
            _compare(ours, right, case)


def _compare(ours: Any, right: Any, case: Case) -> None:
    if right is None:
        assert ours is None
        return
    if isinstance(right, (list, tuple)) or isinstance(ours, list):
        assert len(ours) == len(right)
        for one, other in zip(ours, right, strict=True):
            _compare(one, other, case)
        return
    right = np.asarray(right)
    found = ours.data if isinstance(ours, Tensor) else np.asarray(ours)
    if right.dtype == np.float16:  # computed in float32
        with np.errstate(over="ignore"):
            found = found.astype(np.float16)
    assert found.dtype == right.dtype, (found.dtype, right.dtype)
    assert found.shape == right.shape, (found.shape, right.shape)
    if "bernoulli" in case.name:  # draws of its own
        return
    np.testing.assert_allclose(found, right, rtol=case.rtol, atol=case.atol)


#: Types that no operator here computes with, by the words of the error.
REFUSED = re.compile(r"numbers of type (\w+) are not supported")


def failures(cases: Iterable[Case]) -> dict[str, str | None]:
    """Return the cases that do not pass: why they are left out, or None where they should pass."""
    failed: dict[str, str | None] = {}
    for case in cases:
        unknown = operators(case.model) - TABLE.keys()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check(case)
        except ModelFileError as error:
            refused = REFUSED.search(str(error))
            failed[case.name] = refused[1] if refused else "operator" if unknown else None
        except (AssertionError, DaskdlError):
            failed[case.name] = None
    return failed


def passed(failed: dict[str, str | None]) -> list[Case]:
    """Return the node cases that are not among the failures."""
    return [case for case in node_cases() if case.name not in failed]
