"""A torch module as pickle takes it: without its weights, and with its parametrizations."""

from __future__ import annotations

import copy
from typing import Any

from torch.nn.utils import parametrize

from daskdl.torch.library import torch


def packed(module: Any) -> tuple[Any, list[str]]:
    """Return a copy without weights, and the names of its parts that are parametrized.

    torch makes a class for each parametrized part (``weight_norm``, ``spectral_norm``), which
    pickle does not find; the copy's parts are of the class that they had before. Tensors that are
    computed from parameters, as the older ``weight_norm`` and ``prune`` leave them, are constants
    in the copy until its first pass computes them.
    """
    memo: dict[int, Any] = {}
    for parameter in module.parameters():
        empty = torch.empty(0, dtype=parameter.dtype)
        memo[id(parameter)] = torch.nn.Parameter(empty, parameter.requires_grad)
    for part in module.modules():
        for value in vars(part).values():
            if isinstance(value, torch.Tensor) and value.grad_fn is not None:
                memo[id(value)] = value.detach().clone()
    names = [name for name, part in module.named_modules() if parametrize.is_parametrized(part)]
    made = copy.deepcopy(module, memo)
    for name in names:
        part = made.get_submodule(name)
        part.__class__ = type(part).__bases__[0]
    return made, names


def unpack(module: Any, names: list[str]) -> None:
    """Make parts of a copy parametrized again."""
    for name in names:
        part = module.get_submodule(name)
        parametrize._inject_new_class(part)
        for tensor in part.parametrizations:
            parametrize._inject_property(part, tensor)
