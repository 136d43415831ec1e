"""The normalisation of a batch, where TensorFlow wrote it as seven nodes of arithmetic.

``tf.nn.batch_normalization`` makes ``x * s + (beta - mean * s)``, with
``s = gamma / sqrt(variance + eps)``; gamma and beta may be left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from daskdl.interop.tensorflow.graphdef import NodeDef

#: Patterns of nodes: an operator and its inputs. A word stands for any node, which is the same one
#: wherever the word comes; in capitals for a constant.
_SHIFTS = (("Sub", "BETA", ("Mul", "MEAN", "s")), ("Mul", ("Neg", "MEAN"), "s"))
_ROOT = ("Rsqrt", ("Add", "VARIANCE", "EPS"))
_SCALES = (("Mul", _ROOT, "GAMMA"), _ROOT)
_ALIASES = ("Identity", "Const")


class BatchNorm(NamedTuple):
    """Names of nodes: what is normalised, and the constants by which."""

    x: str
    mean: str
    variance: str
    eps: str
    gamma: str
    beta: str


def recognised(node: NodeDef, nodes: Mapping[str, NodeDef]) -> BatchNorm | None:
    """Return the parts of a normalisation whose last addition this is, None if it is none."""
    for shift, scale in itertools.product(_SHIFTS, _SCALES):
        for words in _matches(("Add", ("Mul", "x", "s"), shift), node.name, nodes, {}):
            for names in _matches(scale, words["s"], nodes, words):
                return BatchNorm(
                    *(names.get(w, names.get(w.upper(), "")) for w in BatchNorm._fields)
                )
    return None


def _matches(
    pattern: Any, name: str, nodes: Mapping[str, NodeDef], words: dict[str, str]
) -> Iterator[dict[str, str]]:
    """Yield names by the words of a pattern, for each way in which it fits a node."""
    if isinstance(pattern, str):
        if words.get(pattern, name) == name and (pattern.islower() or _constant(name, nodes)):
            yield {**words, pattern: name}
        return
    operator, *parts = pattern
    node = nodes.get(name)
    if node is None or node.operator not in (operator, f"{operator}V2"):
        return
    orders = itertools.permutations(parts) if operator in ("Add", "Mul") else [parts]
    for order in orders if len(node.inputs) == len(parts) else ():
        matches = [words]
        for part, read in zip(order, node.inputs, strict=True):
            matches = [more for known in matches for more in _matches(part, read, nodes, known)]
        yield from matches


def _constant(name: str, nodes: Mapping[str, NodeDef]) -> bool:
    """Whether a name is a constant, or one read through an Identity."""
    for _ in range(8):
        node = nodes.get(name)
        if node is None or node.operator not in _ALIASES:
            return False
        if node.operator == "Const":
            return True
        if not node.inputs:
            return False
        name = node.inputs[0]
    return False
