"""TorchModule: a torch.nn.Module as a Module; its parameters and gradients view one vector."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from torch.nn.utils import parametrize

from daskdl.errors import SettingsError, ShapeError
from daskdl.kernels.runtime.precision import precision
from daskdl.nn.core.state import next_draw
from daskdl.tensor import Node, Tensor, recording, wants_grad
from daskdl.torch.library import as_array, as_tensor, budgeted, drawing_from, sources_of, torch
from daskdl.torch.state import TorchState, logger, taking


class TorchModule(TorchState):
    """An unchanged ``torch.nn.Module``, trained by daskdl.

    Its parameters and their gradients are views of :attr:`flat` and :attr:`flat_grad`; other dtypes
    than float32 are kept as float32 there and rounded for each pass. Persistent buffers, also
    counters, are averaged over the shards like any :class:`~daskdl.nn.Buffer`. Buffers that no pass
    changes keep their bits; a change to a buffer of a class outside torch.nn gives a warning.
    Buffers that are not saved are constants. Random numbers follow from the seed, epoch, iteration
    and shard. Inputs, weights and results keep the module's layout, such as (N, C, H, W). If all
    parameters have another float dtype, inputs are converted to it. ``precision="bf16"`` runs the
    module under ``torch.autocast``.

    Each fit, evaluation, prediction, call and save begins with the state of the torch module:
    loaded weights, frozen or replaced parameters and ``eval()`` count. Parts in ``eval()`` inside a
    module in training stay so in training.

    Parameters
    ----------
    module : torch.nn.Module
        It is used, not copied: after a fit it holds the trained weights and buffers.
    compile : bool
        Pass it through ``torch.compile``, on each worker.
    output : str, optional
        Field with the result, such as ``"logits"``, for a module that returns a mapping or object.
        By default all tensors in it; for a mapping of tensors by name.

    Raises
    ------
    SettingsError
        When ``module`` is no module, or has complex or lazy parameters.

    Examples
    --------
    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> model = TorchModule(net)
    >>> model(np.zeros((3, 4), np.float32)).shape
    (3, 2)
    >>> model.flat.size
    58
    """

    fewest_samples = 2  # torch's batch norm of vectors needs two

    def __init__(self, module: Any, compile: bool = False, output: str | None = None) -> None:
        if not isinstance(module, torch.nn.Module):
            raise SettingsError(
                f"TorchModule: expected a torch.nn.Module, found {module!r}; layers of daskdl need "
                "no wrapper"
            )
        # A model file has no torch module: pass one by daskdl.load(path, module=net).
        self.__dict__["_arguments"] = ((), {"compile": compile, "output": output})
        super().__init__(module)
        self._compile, self._output = compile, output

    @property
    def caveat(self) -> str:  # type: ignore[override]
        """Limits of a fit's reproducibility; a SettingsError for unsupported hooks or settings."""
        for name, p in self._module.named_parameters():
            if p._backward_hooks or p._post_accumulate_grad_hooks:
                raise SettingsError(
                    f"TorchModule: {name}: expected no hook on a parameter's gradient, which "
                    "copies for workers lose, found one; hooks of modules are called"
                )
        for name, part in self._module.named_modules():
            if getattr(part, "scale_grad_by_freq", False):
                raise SettingsError(
                    f"TorchModule: {name}: expected scale_grad_by_freq=False, found True, which "
                    "divides by how often an id is in a shard, not in the batch; set it to False"
                )
        return (
            "a torch module gives the same bits on any number of workers of the same kind of "
            "processor, torch version and threads, and by operations that torch calls deterministic"
        )

    @property
    def module(self) -> Any:
        """The torch module, with the current weights."""
        self.take_over()
        self.numbers_changed()
        self._theirs = True
        return self._module

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Call the module.

        Parameters
        ----------
        *inputs, **named : arrays, or Tensors of other layers
            Inputs of the module's own forward, by order or by name.

        Returns
        -------
        Tensor, or tuple or dict of Tensors
        """
        self.take_over()
        self._bind()
        self._take_buffers()
        budgeted()
        self._set_mode()
        names, inputs = tuple(named), (*inputs, *named.values())
        # Copies: if forward changes its input (x += 1), the samples must not change.
        tensors = [as_tensor(x.data if isinstance(x, Tensor) else x, copy=True) for x in inputs]
        for tensor, x in zip(tensors, inputs, strict=True):
            if recording() and wants_grad(x):
                tensor.requires_grad_(True)
        with torch.set_grad_enabled(recording()):
            output = self._call(tensors, names)
        results = self._recorded(inputs, tensors, list(_tensors(output, self._output)))
        return _like_output(results, output, self._output)

    def numbers_changed(self) -> None:
        """Copy buffers, and parameters other than float32, into the torch module."""
        self._bind()
        self._take_buffers()

    def state_dict(self, *, names: str = "torch") -> dict[str, Any]:
        """Return a copy of every parameter and saved buffer by torch's name, also tied ones."""
        return {name: as_array(tensor).copy() for name, tensor in self.module.state_dict().items()}

    def load_state_dict(
        self, state: Mapping[str, Any], strict: bool = True, *, names: str = "torch"
    ) -> None:
        """Copy arrays or tensors into parameters and buffers, always by torch's names.

        Raises
        ------
        ShapeError
            When a name is missing or unknown, or a shape differs.
        """
        tensors = {
            name: value if isinstance(value, torch.Tensor) else as_tensor(np.asarray(value))
            for name, value in state.items()
        }
        self.take_over()
        try:
            self._module.load_state_dict(tensors, strict=strict)
        except RuntimeError as error:
            raise ShapeError("TorchModule: " + " ".join(str(error).split())) from error
        for parameter, data, _ in self._bound:
            if parameter.dtype != torch.float32:
                data[...] = as_array(parameter)
        for name, buffer, theirs, key in self._buffers:
            buffer.data[...] = as_array(theirs[key])
            self._remember(name, theirs[key])

    # --- a pass

    def _call(self, inputs: Sequence[Any], names: Sequence[str]) -> Any:
        """Return the module's result; ``names`` belong to the last inputs."""
        if self._dtype != torch.float32:
            inputs = [
                x.to(self._dtype) if torch.is_tensor(x) and x.is_floating_point() else x
                for x in inputs
            ]
        ordered = inputs[: len(inputs) - len(names)]
        named = dict(zip(names, inputs[len(ordered) :], strict=True))
        with torch.autocast("cpu", torch.bfloat16, enabled=precision() != "float32"):
            return self._run(ordered, named)

    def _run(self, ordered: Sequence[Any], named: Mapping[str, Any]) -> Any:
        module, first = self._module, self.training and self._draws is None
        prior = _plain_attributes(self._module) if first else {}
        if self._compile:
            if self._compiled is None:
                self._compiled = torch.compile(module)
            module = self._compiled
        if self.training and self._draws is not False:
            with drawing_from(*next_draw()):
                before = torch.random.get_rng_state()
                output = module(*ordered, **named)
                # If the first pass draws nothing, no other pass does.
                self._draws = not torch.equal(before, torch.random.get_rng_state())
        else:
            output = module(*ordered, **named)
        if self.training:
            self._put_buffers()
        if first:
            after = _plain_attributes(self._module)
            changed = [name for name in prior if after.get(name, prior[name]) != prior[name]]
            if changed:
                logger.warning(
                    "TorchModule: forward changes %s, which is no buffer: a fit changes it in "
                    "the copies of its threads and workers, and in this module it stays as it is; "
                    "register_buffer makes it part of the trained state, and fit(shards=1) keeps "
                    "changes of parameters",
                    ", ".join(changed),
                )
        return output

    def _recorded(
        self, inputs: Sequence[Any], leaves: Sequence[Any], results: Sequence[Any]
    ) -> list[Tensor]:
        """Return results as tensors whose backward is torch's."""
        sources = sources_of(inputs)
        differentiable = [recording() and r.requires_grad for r in results]

        def backward(*gradients: Any) -> tuple[Any, ...]:
            budgeted()
            pairs = [
                (r, as_tensor(np.ascontiguousarray(g)).to(r.dtype))
                for r, g, wanted in zip(results, gradients, differentiable, strict=True)
                if g is not None and wanted
            ]
            torch.autograd.backward([r for r, _ in pairs], [g for _, g in pairs])
            for parameter, _, grad in self._bound:
                if parameter.dtype != torch.float32 and parameter.grad is not None:
                    grad += as_array(parameter.grad)
            return tuple(
                None if source is None else as_array(tensor.grad)
                for source, tensor in zip(sources, leaves, strict=True)
            )

        node = Node(sources, len(results), backward) if any(differentiable) else None
        tensors = [Tensor(as_array(r)) for r in results]
        for slot, tensor in enumerate(tensors):
            tensor._node, tensor._slot = node if differentiable[slot] else None, slot
        return tensors

    # --- pickled, and copied

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the torch module's weights, which :attr:`flat` has."""
        with taking:
            self.take_over()
            bound, state = self._bound, super().__getstate__()
            grads = [parameter.grad for parameter, _, _ in bound]
            try:
                state["_module"], state["_parametrized"] = packed(self._module)
            finally:
                for (parameter, _, _), grad in zip(bound, grads, strict=True):
                    parameter.grad = grad
        empty: dict[str, Any] = {"_bound": [], "_buffers": [], "_compiled": None, "_draws": None}
        return {**state, **empty, "_theirs": False, "_mode": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        unpack(state["_module"], state.pop("_parametrized"))
        self.__dict__.update(state)


def _plain_attributes(module: Any) -> dict[str, Any]:
    """Return the numbers and texts of all parts, versions of constants, hashes of parameters."""
    attributes: dict[str, Any] = {}
    for path, part in module.named_modules():
        constants = {name: part._buffers[name] for name in part._non_persistent_buffers_set}
        for name, value in (vars(part) | constants | part._parameters).items():
            if isinstance(value, torch.nn.Parameter):
                attributes[f"{path}.{name}".strip(".")] = hash(as_array(value).tobytes())
            elif isinstance(value, torch.Tensor) and not value.requires_grad:
                attributes[f"{path}.{name}".strip(".")] = id(value), value._version
            elif isinstance(value, (int, float, str)) and name != "training":
                attributes[f"{path}.{name}".strip(".")] = value
    return attributes


def _tensors(result: Any, output: str | None) -> Iterator[Any]:
    """Yield the tensors of a result: a tensor, or a sequence, mapping or object of such."""
    if output is not None:
        result = result[output] if isinstance(result, Mapping) else getattr(result, output)
    if isinstance(result, torch.Tensor):
        yield result
    elif isinstance(result, (Mapping, tuple, list)):
        values = result.values() if isinstance(result, Mapping) else result
        yield from (t for value in values for t in _tensors(value, None))
    elif result is not None:
        raise SettingsError(
            f"TorchModule: expected the module to return tensors, found {type(result).__name__}; "
            "name the field that is the result by output="
        )


def _like_output(results: Sequence[Tensor], result: Any, output: str | None) -> Any:
    """Return results in the output's form: one tensor, a dict by name, or a tuple."""
    if len(results) == 1:
        return results[0]
    if output is None and isinstance(result, Mapping):
        named = [name for name, value in result.items() if list(_tensors(value, None))]
        if all(isinstance(result[name], torch.Tensor) for name in named):
            return dict(zip(named, results, strict=True))
    return tuple(results)


def packed(module: Any) -> tuple[Any, list[str]]:
    """Return a copy without weights, and the names of its parametrized parts.

    torch makes a class for each parametrized part (``weight_norm``, ``spectral_norm``), which
    pickle cannot find; the copy's parts have their original class. Tensors computed from
    parameters, as by the older ``weight_norm`` and ``prune``, are constants in the copy until its
    first pass computes them.
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
    """Restore the parametrized classes of parts of a copy."""
    for name in names:
        part = module.get_submodule(name)
        parametrize._inject_new_class(part)
        for tensor in part.parametrizations:
            parametrize._inject_property(part, tensor)
