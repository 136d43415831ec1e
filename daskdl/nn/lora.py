"""LoRA: trained maps of low rank that are added to fixed affine maps (arXiv 2106.09685)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from daskdl import ops
from daskdl.errors import SettingsError
from daskdl.kernels.products.matmul import matmul
from daskdl.names import nearest
from daskdl.nn.core.module import Module
from daskdl.nn.core.parameter import Frozen, Parameter, generator, uniform, zeros
from daskdl.nn.core.structure import replace_module
from daskdl.nn.linear import Linear
from daskdl.ops.linear import linear
from daskdl.tensor import Tensor

__all__ = ["Adapted", "LoRA"]


class LoRA(Module, pure=True):
    """A fixed affine map plus a trained map of low rank: (..., in) -> (..., out).

    ``y = layer(x) + alpha / rank * x @ down.T @ up.T``. It starts as the layer itself, since ``up``
    is zeros. E. Hu et al., arXiv 2106.09685.

    Parameters
    ----------
    layer : Linear
        Layer to use; its weights become :class:`Frozen`.
    rank : int
    alpha : float
    seed : int, optional
        Seed of ``down``.

    Examples
    --------
    >>> layer = nn.LoRA(nn.Linear(8, 5, seed=0), rank=2, seed=0)
    >>> [(name, p.shape) for name, p in layer.named_parameters()]
    [('down', (2, 8)), ('up', (5, 2))]
    """

    def __init__(
        self, layer: Module, rank: int = 8, alpha: float = 16.0, seed: int | None = None
    ) -> None:
        if not isinstance(layer, Linear):
            raise SettingsError(
                f"LoRA.layer: expected a Linear, found {type(layer).__name__}; name affine maps"
            )
        if not isinstance(rank, int) or rank < 1:
            raise SettingsError(f"LoRA.rank: expected an integer from 1, found {rank!r}")
        self.layer, self.scale = layer, alpha / rank
        _freeze(layer, {})
        self.down = uniform(generator(seed), (rank, layer.in_features), layer.in_features)
        self.up = zeros((layer.out_features, rank))

    layer: Linear

    def forward(self, x: Any) -> Tensor:
        """Map x (..., in) to (..., out)."""
        return ops.add(
            self.layer(x), linear(linear(x, self.down, None) * self.scale, self.up, None)
        )

    def merge(self) -> Linear:
        """Return the layer with this map in its weights, which can be trained again."""
        weight = self.layer.weight.data + self.scale * matmul(self.up.data, self.down.data)
        self.layer.weight.data = weight.astype(weight.dtype, copy=False)
        _thaw(self.layer, {})
        return self.layer


class Adapted(Module, pure=True):
    """A model in which only LoRA adapters are trained, sent in fits and saved in checkpoints.

    Parameters
    ----------
    model : Module
        Model to use; its layers are replaced, and all other parameters become :class:`Frozen`.
    rank, alpha
        Settings of each :class:`LoRA`.
    targets : sequence of str
        Names, or ends of names, of :class:`Linear` layers, such as ``"query"``.
    trained : sequence of str
        Names of modules that are trained as a whole, such as a new head.
    seed : int
        Seed of the adapters.

    Raises
    ------
    SettingsError
        When a name matches no such layer.

    Examples
    --------
    >>> model = nn.Adapted(nn.TransformerBlock(4, 2, 6, seed=0), rank=2)
    >>> [name for name, _ in model.adapters()]
    ['attention.query', 'attention.value']
    >>> model.flat.size
    32
    """

    def __init__(
        self,
        model: Module,
        rank: int = 8,
        alpha: float = 16.0,
        targets: Sequence[str] = ("query", "value"),
        trained: Sequence[str] = (),
        seed: int = 0,
    ) -> None:
        self.model = model
        layers = {n: m for n, m in model.modules() if isinstance(m, Linear) and n}
        chosen = {n: m for target in targets for n, m in _ending(layers, target).items()}
        adapters = {
            id(layer): LoRA(layer, rank, alpha, 1000 * seed + i)
            for i, layer in enumerate({id(m): m for m in chosen.values()}.values())
        }
        inside = dict(model.modules())
        for name in trained:
            if not any(_under(n, name) for n in inside):
                raise SettingsError(
                    f"Adapted.trained: expected names of modules, such as "
                    f"{', '.join(map(repr, nearest(name, filter(None, inside))))}, found {name!r}"
                )
        for name, layer in chosen.items():
            replace_module(model, name, adapters[id(layer)])
        seen: dict[int, Frozen] = {}
        for name, module in model.modules():
            if not isinstance(module, LoRA) and not any(_under(name, one) for one in trained):
                _freeze(module, seen)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Compute the model's result."""
        return self.model(*inputs, **named)

    def adapters(self) -> Iterator[tuple[str, LoRA]]:
        """Yield (dotted name in the model, adapter)."""
        return ((n, m) for n, m in self.model.modules() if isinstance(m, LoRA))

    def merge(self) -> Module:
        """Return the model with the adapters in its weights, which can all be trained again.

        Do not use this module afterwards.
        """
        merged = dict[int, Linear]()
        for name, adapter in list(self.adapters()):
            if id(adapter) not in merged:  # several places may share it
                merged[id(adapter)] = adapter.merge()
            replace_module(self.model, name, merged[id(adapter)])
        seen: dict[int, Parameter] = {}
        for _, module in self.model.modules():
            _thaw(module, seen)
        return self.model


def _ending(layers: dict[str, Linear], target: str) -> dict[str, Linear]:
    chosen = {n: m for n, m in layers.items() if f".{n}".endswith(f".{target}")}
    if not chosen:
        ends = [n if n[-1].isdigit() else n.rpartition(".")[2] for n in reversed(layers)]
        some = ", ".join(list(dict.fromkeys(ends))[:8]) or "(it holds none)"
        raise SettingsError(
            "Adapted.targets: expected names, or ends of names, of Linear layers, such as "
            f"{some}, found {target!r}"
        )
    return chosen


def _under(name: str, module: str) -> bool:
    return f"{name}.".startswith(f"{module}.")


def _freeze(module: Module, seen: dict[int, Frozen]) -> None:
    """Freeze a module's own parameters; shared ones stay shared."""
    for name, value in list(vars(module).items()):
        if isinstance(value, Parameter):
            setattr(module, name, seen.setdefault(id(value), Frozen(value.data)))


def _thaw(module: Module, seen: dict[int, Parameter]) -> None:
    """Make a module's own frozen weights parameters again."""
    for name, value in list(vars(module).items()):
        if isinstance(value, Frozen):
            setattr(module, name, seen.setdefault(id(value), Parameter(value.data)))
