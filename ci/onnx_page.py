"""Write docs/onnx.md: which operators of ONNX are computed, and why the others are not.

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
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from daskdl.errors import DaskdlError, ModelFileError
from daskdl.interop.onnx.reader import from_proto
from daskdl.nn.operators import FAMILIES, TABLE
from daskdl.tensor import Tensor, no_grad

PAGE = Path(__file__).resolve().parents[1] / "docs" / "onnx.md"
#: Operators that are not in the table, and why.
REASONS = {
    "ImageDecoder": "pictures are decoded by `daskdl.data.image`, before the network",
    "MaxRoiPool": "`RoiAlign` is what detectors use",
    "Multinomial": "draws by other rules than any library's; no test has numbers for it",
    "RegexFullMatch": "text",
    "StringConcat": "text",
    "StringNormalizer": "text",
    "StringSplit": "text",
    "TfIdfVectorizer": "of text; `daskdl.data.text` counts words",
}
#: Operators outside of ONNX' standard set, by the beginning of their name.
DOMAINS = {
    "ai.onnx.ml": "classical methods, not networks",
    "ai.onnx.preview.training": "training is daskdl's own",
    "ai.onnx.preview": "not yet a standard",
}
HEADER = """\
# ONNX

`pip install 'daskdl[onnx]'`. A file of any framework becomes a module that predicts, trains and is
saved as any other:

```python
import daskdl
from daskdl import nn

net = daskdl.load("model.onnx")  # nn.Graph; channels_last=True takes pictures as (N, H, W, C)
net.predict(pictures)  # arrays, dask, xarray, on the current cluster
net.freeze("conv*")  # names of the file, with wildcards
trunk = net.until("pool5")  # ends at a value inside ...
model = nn.Sequential(trunk, nn.Linear(512, 10))  # ... for a head of one's own
daskdl.save(model, "model.safetensors")
```

- Weights of floats are parameters, running statistics of batch normalisation are buffers; what sets
  an operator up (sizes of `Resize`, limits of `Clip`), integers and float64 are constants. An array
  of floats that is no weight, such as the mean of pictures, is kept by `freeze(name)`.
- Inside, images and filters lie channels last, as daskdl's kernels want them; what the file calls
  (N, C, H, W) is a view of that, so that changes of layout cost nothing.
- The first axis of inputs is free. Where the file is made for a batch of 6, `predict` passes 6 at a
  time; states (1, N, H) or a flag beside samples pass whole.
- Nodes may lie in any order. An attribute that the standard does not have is refused.
- float32, float64, float16 (computed in float32, results are float32; samples for an input
  of float64 are not rounded), integers and bool; bfloat16,
  float8, 4 and 2 bits and text are refused by name.
- Gradients go back through all of these operators but comparisons, rounding, shapes, places
  (`ArgMax`), draws and quantised ones, where there are none.
- A file is walked through before it is parsed: reading takes at most four times its size and 50 MB,
  runs nothing and writes nothing; weights in files of their own are read in its folder only.
- Functions of a file's own have to be put in place first (`onnx.inliner.inline_local_functions`).

Out again, for any framework and runtime:

```python
from daskdl.interop import onnx

onnx.save(model, "model.onnx", input_shape=(224, 224, 3))  # of one sample; batches of any size
```

A graph is written as it is. Any other module is run on two batches of different size, and the
operations of daskdl that it does become nodes (`channels_first=True` for inputs (N, C, H, W)). What
it computes of its samples by numpy alone cannot be written, and is refused. All of `daskdl.models`
is written; onnxruntime agrees to 1e-4 (`tests/daskdl/interop/onnx/test_writer.py`).

`examples/fine_tune_onnx.py` teaches a network out of a file other classes and writes it again.

## PyTorch's weights

```python
from daskdl.interop import read
from daskdl.models import ResNet

model = ResNet(50)
model.load_state_dict(read("resnet50.pth"), names="torch")  # torchvision's names and layouts
model.state_dict(names="torch")  # and back
```

`read` takes `.pt` and `.pth`, new (zip) and old, and `.safetensors`, without torch. A pickle's
calls are looked up in a table of the few that weights need; nothing else is imported, called or
built. `names="torch"` knows the names of ResNet, VGG-16, SSD300 and
GoogLeNet, and of networks whose layers are called alike;
filters are turned to channels last, the two biases of recurrent layers added. Whole modules and
TorchScript are refused: `torch.save(net.state_dict(), path)` writes what is read.

Below is written by `python -m ci.onnx_page`, which runs the node tests of onnx {version} that are
not expanded into simpler operators; a test holds it true.

"""


class Case(NamedTuple):
    """One test: a model, and sets of inputs and expected outputs."""

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
        cases = load_model_tests(kind="node")
    return tuple(
        Case(c.name, c.model, c.data_sets or [], c.rtol, c.atol)
        for c in cases
        if "expanded" not in c.name
    )


def stored_cases(kind: str) -> Iterator[Case]:
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
        yield Case(case.name, model, sets, case.rtol, case.atol)


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


def check(case: Case) -> None:
    """Raise AssertionError, or an error of daskdl, unless the outputs of a case are right."""
    from onnx import TensorProto, numpy_helper

    def array(value: Any) -> Any:
        return numpy_helper.to_array(value) if isinstance(value, TensorProto) else value

    graph = from_proto(case.model, case.name).eval()
    for sources, targets in case.sets:
        inputs, expected = [array(v) for v in sources], [array(v) for v in targets]
        with no_grad():
            outputs = graph(*inputs)
        results = outputs if isinstance(outputs, tuple) else (outputs,)
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


def failures(cases: Iterable[Case]) -> dict[str, str | None]:
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


def passed(failed: dict[str, str | None]) -> list[Case]:
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
        "In brackets how many tests each has; operators that later versions replaced come last.",
        "",
    ]
    for family in FAMILIES:
        names = sorted(n for n, f in TABLE.items() if _home(f, n) == family.__name__)
        entries = [f"{n} ({passing[n]})" if passing[n] else n for n in names if n in known]
        entries += [n for n in names if n not in known]
        title = (family.__doc__ or "").split("\n")[0].rstrip(".").split(";")[0].split(":")[0]
        lines += [f"**{title}**: {', '.join(entries)}.", ""]
    lines += ["## What is left", "", "| operator | why |", "|---|---|"]
    lines += [f"| {name} | {REASONS[name]} |" for name in missing]
    lines += [f"| {name}.* | {why} |" for name, why in DOMAINS.items()]
    lines += ["", "Tests that are left out:", "", "| tests | of | why |", "|---|---|---|"]
    groups: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    for case in cases:
        if case.name in failed:
            why = failed[case.name] or "FAILS"
            of = ", ".join(sorted(operators(case.model)))
            groups[of, "see above" if why == "operator" else why].append(case.name)
    lines += [f"| {len(names)} | {of} | {why} |" for (of, why), names in sorted(groups.items())]
    return HEADER.format(version=onnx.__version__) + "\n".join(lines) + "\n"


def _home(function: object, name: str) -> str:
    """Return the module that registers an operator, "" without one."""
    for family in FAMILIES:
        text = Path(str(family.__file__)).read_text(encoding="utf-8")
        if f'"{name}"' in text and getattr(function, "__module__", "") == family.__name__:
            return family.__name__
    return ""


def main() -> int:
    """Write the page, or compare with it."""
    text = page(failures(node_cases()))
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.read_text(encoding="utf-8") == text:
        return 0
    print("docs/onnx.md is out of date; run python -m ci.onnx_page", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
