"""Freezing: parameters, by their names, that training leaves as they are."""

from __future__ import annotations

import fnmatch
import itertools

from daskdl.errors import SettingsError
from daskdl.names import nearest
from daskdl.nn.parameter import Parameter
from daskdl.nn.structure import Structure


def set_requires_grad(model: Structure, names: tuple[str, ...], wanted: bool) -> None:
    """Freeze or unfreeze parameters; the gradients of frozen ones are zero.

    Parameters
    ----------
    model : Module
    names : tuple of str
        Of parameters, or of modules, whose parameters all count, with the wildcards of a shell; all
        parameters of the model without.
    wanted : bool
        Whether their gradients are wanted.

    Raises
    ------
    SettingsError
        When a name fits nothing; nothing is changed then.
    """
    owned = _owned(model)
    chosen = [owned[""]] if not names else []
    for name in names:
        fitting = fnmatch.filter(owned, name)
        if not fitting:
            near = ", ".join(map(repr, nearest(name, filter(None, owned)))) or "(it holds none)"
            raise SettingsError(
                f"{type(model).__name__}: expected the name of a parameter or module in it, such "
                f"as {near}, found {name!r}"
                "; names are those of named_parameters(), with * for any letters"
            )
        chosen += [owned[one] for one in fitting]
    for parameter in itertools.chain.from_iterable(chosen):
        parameter.requires_grad = wanted
        if not wanted and parameter.keeps_rows:
            parameter.grad = None
        elif not wanted and parameter.grad is not None:
            parameter.grad[...] = 0


def _owned(model: Structure) -> dict[str, list[Parameter]]:
    """Return the parameters that each name stands for."""
    owned = {prefix: list(module.parameters()) for prefix, module in model.modules()}
    return {**owned, **{name: [parameter] for name, parameter in model.named_parameters()}}
