"""Write the end of docs/onnx.md: which operators are computed, and why the others are not.

Usage: python -m ci.onnx_page [--check]; --check writes nothing, and fails if the page is out of
date. It runs all node tests of the installed onnx, for a minute or two.
"""

from __future__ import annotations

import collections
import functools
import re
import sys
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ci.pages import write_or_check
from daskdl.errors import DaskdlError, ModelFileError
from daskdl.interop.onnx.reader import from_proto
from daskdl.nn.operators import FAMILIES, TABLE
from daskdl.tensor import Tensor, no_grad

if TYPE_CHECKING:
    from onnx.backend.test.case.test_case import TestCase

PAGE = Path(__file__).resolve().parents[1] / "docs" / "onnx.md"
#: Operators that are not in the table, and why.
REASONS = {
    "ImageDecoder": "`daskdl.data.image` decodes pictures before the network",
    "MaxRoiPool": "detectors use `RoiAlign`",
    "Multinomial": "each library draws by other rules; no test has numbers for it",
    "RegexFullMatch": "text",
    "StringConcat": "text",
    "StringNormalizer": "text",
    "StringSplit": "text",
    "TfIdfVectorizer": "text; `daskdl.data.text` counts words",
}
#: Operators outside of ONNX' standard set, by the beginning of their name.
DOMAINS = {
    "ai.onnx.ml": "classical methods, not networks",
    "ai.onnx.preview.training": "daskdl trains in its own way",
    "ai.onnx.preview": "not yet a standard",
}
#: Line of the page behind which its written part begins.
MARK = "<!-- operators -->\n"


@functools.cache
def node_cases() -> tuple[TestCase, ...]:
    """Return the node tests that are not expanded into simpler operators."""
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    return tuple(case for case in cases if "expanded" not in case.name)


def stored_cases(kind: str) -> Iterator[TestCase]:
    """Yield the tests of a kind that is in files: simple, pytorch-operator, pytorch-converted."""
    import onnx
    from onnx.backend.test.loader import load_model_tests

    for case in load_model_tests(kind=kind):
        folder = Path(case.model_dir)
        model = onnx.load(folder / "model.onnx")
        sets = []
        for data in sorted(folder.glob("test_data_set_*")):
            inputs = _stored(data, "input", model.graph.input)
            sets.append((inputs, _stored(data, "output", model.graph.output)))
        yield replace(case, model=model, data_sets=sets)


def _stored(folder: Path, kind: str, values: Any) -> list[Any]:
    import onnx
    from onnx import numpy_helper

    arrays = []
    for i, value in enumerate(values):
        path = folder / f"{kind}_{i}.pb"
        if not path.is_file():
            break
        data = path.read_bytes()
        if value.type.HasField("sequence_type"):
            arrays.append(numpy_helper.to_list(onnx.SequenceProto.FromString(data)))
        elif value.type.HasField("optional_type"):
            arrays.append(numpy_helper.to_optional(onnx.OptionalProto.FromString(data)))
        else:
            arrays.append(numpy_helper.to_array(onnx.TensorProto.FromString(data)))
    return arrays


def operators(model: Any) -> set[str]:
    """Return the operators of a model, with their domain if it is not ONNX' standard set."""
    return {
        node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}:{node.op_type}"
        for node in model.graph.node
    }


def check(case: TestCase) -> None:
    """Raise AssertionError, or an error of daskdl, unless the outputs of a case are right."""
    from onnx import TensorProto, numpy_helper

    def array(value: Any) -> Any:
        return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value

    graph = from_proto(case.model, case.name).eval()
    for sources, targets in case.data_sets or []:
        inputs, expected = [array(v) for v in sources], [array(v) for v in targets]
        with no_grad():
            outputs = graph(*inputs)
        results = outputs if isinstance(outputs, tuple) else (outputs,)
        assert len(results) == len(expected)
        for ours, right in zip(results, expected, strict=True):
            _compare(ours, right, case)


def _compare(ours: Any, right: Any, case: TestCase) -> None:
    if right is None:
        assert ours is None
        return
    if isinstance(right, (list, tuple)) or isinstance(ours, list):
        assert len(ours) == len(right)
        for one, other in zip(ours, right, strict=True):
            _compare(one, other, case)
        return
    right = np.asarray(right)
    actual = ours.data if isinstance(ours, Tensor) else np.asarray(ours)
    if right.dtype == np.float16:  # computed in float32
        with np.errstate(over="ignore"):
            actual = actual.astype(np.float16)
    assert actual.dtype == right.dtype, (actual.dtype, right.dtype)
    assert actual.shape == right.shape, (actual.shape, right.shape)
    if "bernoulli" in case.name:  # random
        return
    np.testing.assert_allclose(actual, right, rtol=case.rtol, atol=case.atol)


#: Error message about a type that no operator supports.
REFUSED = re.compile(r"numbers of type (\w+) are not supported")


def failures(cases: Iterable[TestCase]) -> dict[str, str | None]:
    """Return the cases that fail: why they are left out, or None if they should pass."""
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


def passed(failed: dict[str, str | None]) -> list[TestCase]:
    """Return the node cases that are not among the failures."""
    return [case for case in node_cases() if case.name not in failed]


def page(failed: dict[str, str | None]) -> str:
    """Return the page for the node tests that fail, see :func:`failures`."""
    import onnx
    from onnx import defs

    known = {s.name for s in defs.get_all_schemas() if not s.domain and not s.deprecated}
    missing = sorted(known - TABLE.keys())
    cases = node_cases()
    passing: collections.Counter[str] = collections.Counter()
    for case in passed(failed):
        passing.update(operators(case.model))
    lines = [
        f"## {len(known & TABLE.keys())} of {len(known)} operators; {len(cases) - len(failed)} of "
        f"{len(cases)} tests",
        "",
        "The brackets say how many tests an operator has. Operators that later versions of ONNX",
        "replaced come last. `python -m ci.onnx_page` writes this part: it runs the node tests of",
        f"onnx {onnx.__version__} that are not expanded into simpler operators.",
        "",
    ]
    for family in FAMILIES:
        names = sorted(n for n, f in TABLE.items() if f.__module__ == family.__name__)
        entries = [f"{n} ({passing[n]})" if passing[n] else n for n in names if n in known]
        entries += [n for n in names if n not in known]
        title = (family.__doc__ or "").split("\n")[0].rstrip(".").split(";")[0].split(":")[0]
        lines += [f"**{title}**: {', '.join(entries)}.", ""]
    lines += ["## Not supported", "", "| operator | why |", "|---|---|"]
    lines += [f"| {name} | {REASONS[name]} |" for name in missing]
    lines += [f"| {name}.* | {why} |" for name, why in DOMAINS.items()]
    lines += ["", "Tests that do not run, by the number type or the reason:", ""]
    groups: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for case in cases:
        if case.name in failed:
            why = failed[case.name] or "FAILS"
            names = ", ".join(sorted(operators(case.model)))
            groups["see above" if why == "operator" else why][names] += 1
    for why, counts in sorted(groups.items()):
        entries = [f"{names} ({count})" for names, count in sorted(counts.items())]
        lines.append(f"- {why}: {', '.join(entries)}")
    before, mark, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    return before + mark + "\n".join(["", *lines, ""])


if __name__ == "__main__":
    written = {PAGE: page(failures(node_cases()))}
    sys.exit(write_or_check(written, sys.argv, "python -m ci.onnx_page"))
