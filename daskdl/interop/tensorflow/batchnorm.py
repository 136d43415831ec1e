"""The normalisation of a batch, where TensorFlow wrote it as seven nodes of arithmetic.

``tf.nn.batch_normalization`` makes ``x * s + (beta - mean * s)``, with
``s = gamma / sqrt(variance + eps)``; gamma and beta may be left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from daskdl.interop.tensorflow.graphdef import NodeDef

_ADD = ("Add", "AddV2")
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
    if node.operator not in _ADD or len(node.inputs) != 2:
        return None
    for one, other in (node.inputs, node.inputs[::-1]):
        product, rest = nodes.get(one), nodes.get(other)
        if product is None or rest is None or product.operator != "Mul":
            continue
        for x, scale in (product.inputs, product.inputs[::-1]):
            shift_parts = _shift(rest, scale, nodes)
            parts = _scale(scale, nodes)
            if shift_parts is not None and parts is not None:
                return BatchNorm(x, shift_parts[0], *parts, shift_parts[1])
    return None


def _shift(node: NodeDef, scale: str, nodes: Mapping[str, NodeDef]) -> tuple[str, str] | None:
    """Return (mean, beta) of ``beta - mean * scale``; of ``-mean * scale`` beta is ""."""
    if node.operator == "Sub" and len(node.inputs) == 2:
        beta, product = node.inputs[0], nodes.get(node.inputs[1])
    elif node.operator == "Mul":
        beta, product = "", node
        negative = [nodes.get(name) for name in node.inputs]
        names = [n.inputs[0] for n in negative if n and n.operator == "Neg" and n.inputs]
        return (names[0], beta) if len(names) == 1 and scale in node.inputs else None
    else:
        return None
    if product is None or product.operator != "Mul" or scale not in product.inputs:
        return None
    others = [name for name in product.inputs if name != scale]
    if len(others) != 1 or not (_constant(others[0], nodes) and _constant(beta, nodes)):
        return None
    return others[0], beta


def _scale(name: str, nodes: Mapping[str, NodeDef]) -> tuple[str, str, str] | None:
    """Return (variance, eps, gamma) of ``rsqrt(variance + eps) * gamma``, gamma "" if left out."""
    node, gamma = nodes.get(name), ""
    if node is not None and node.operator == "Mul" and len(node.inputs) == 2:
        for one, other in (node.inputs, node.inputs[::-1]):
            root = nodes.get(one)
            if root is not None and root.operator == "Rsqrt" and _constant(other, nodes):
                node, gamma = root, other
                break
    if node is None or node.operator != "Rsqrt" or len(node.inputs) != 1:
        return None
    total = nodes.get(node.inputs[0])
    if total is None or total.operator not in _ADD or len(total.inputs) != 2:
        return None
    variance, eps = total.inputs
    return (variance, eps, gamma) if all(_constant(n, nodes) for n in total.inputs) else None


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
