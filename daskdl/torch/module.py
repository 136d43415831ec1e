"""TorchModule: a torch.nn.Module as a Module, its parameters and gradients views of one vector."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.draws import next_draw
from daskdl.nn.module import Module
from daskdl.nn.parameter import Buffer, Parameter
from daskdl.tensor import Node, Tensor, recording, wants_grad
from daskdl.torch.library import as_array, as_tensor, budgeted, drawing_from, torch

#: Whole numbers up to which float32 is exact, and so the counters that travel with the buffers.
LARGEST_COUNT = 1 << 24

#: Relative difference from its first value up to which a buffer counts as unchanged.
SAME = 1e-6


class TorchModule(Module):
    """An unchanged ``torch.nn.Module``, trained by daskdl.

    Its parameters and their gradients are views of :attr:`flat` and :attr:`flat_grad`; those of
    other dtypes than float32 are kept in float32 there and rounded for each pass. Its persistent
    buffers are averaged over the shards like any (:class:`~daskdl.nn.Buffer`), counters among them;
    buffers that are not saved with the module are constants. What it draws follows from the seed,
    epoch, iteration and shard. Inputs, weights and results are laid out as the module has them,
    such as (N, C, H, W).

    Parameters
    ----------
    module : torch.nn.Module
        It is used, not copied: after a fit it holds the trained weights and buffers.
    compile : bool
        Pass it through ``torch.compile``, on each worker.
    output : str, optional
        Of a module that returns a mapping or an object with fields, the one that is the result,
        such as ``"logits"``; by default all tensors in it, of a mapping of tensors by their names.

    Raises
    ------
    SettingsError
        When it is no module, or has complex or lazy parameters.

    Examples
    --------
    >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    >>> model = TorchModule(net)
    >>> model(np.zeros((3, 4), np.float32)).shape
    (3, 2)
    >>> model.flat.size
    58
    """

    fewest_samples = 2  # torch's batch norm takes no fewer of vectors
    caveat = (
        "a torch module gives the same bits on any number of workers of the same kind of "
        "processor, torch version and threads, and by operations that torch calls deterministic"
    )

    def __init__(self, module: Any, compile: bool = False, output: str | None = None) -> None:
        super().__init__()
        if not isinstance(module, torch.nn.Module):
            raise SettingsError(
                f"TorchModule: expected a torch.nn.Module, found {module!r}; layers of daskdl need "
                "no wrapper"
            )
        # A model file keeps no torch module: daskdl.load(path, module=net) is given one.
        self.__dict__["_arguments"] = ((), {"compile": compile, "output": output})
        self._module, self._compile, self._output = module, compile, output
        self._names: list[str] = []  # of parameters, in our order
        self._buffer_names: list[str] = []
        for name, parameter in module.named_parameters():
            self._refuse(name, parameter)
            setattr(self, name, Parameter(as_array(parameter), parameter.requires_grad))
            self._names.append(name)
        constant = _constants(module)
        for name, buffer in module.named_buffers():
            if name not in constant:
                self._refuse(name, buffer)
                setattr(self, name, Buffer(as_array(buffer)))
                self._buffer_names.append(name)
        self._first = {name: self.__dict__[name].data.copy() for name in self._buffer_names}
        self._unbind()
        self._bind()

    @property
    def module(self) -> Any:
        """The torch module, with the weights as they are now."""
        self.numbers_changed()
        return self._module

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Call the module.

        Parameters
        ----------
        *inputs, **named : arrays, or Tensors of layers before
            As the module's own forward takes them, by order or by name.

        Returns
        -------
        Tensor, or tuple or dict of Tensors
        """
        self._bind()
        self._take_buffers()
        budgeted()
        if self._module.training != self.training:
            self._module.train(self.training)
        names, inputs = tuple(named), (*inputs, *named.values())
        given = [as_tensor(x.data if isinstance(x, Tensor) else x) for x in inputs]
        if not recording():
            with torch.no_grad():
                found = self._call(given, names)
            results = [Tensor(as_array(r)) for r in _tensors(found, self._output)]
            return _as_found(results, found, self._output)
        for tensor, x in zip(given, inputs, strict=True):
            if wants_grad(x):
                tensor.requires_grad_(True)
        found = self._call(given, names)
        results = self._recorded(inputs, given, list(_tensors(found, self._output)))
        return _as_found(results, found, self._output)

    def numbers_changed(self) -> None:
        """Give torch's module what is ours alone: buffers, and parameters that are no float32."""
        self._bind()
        self._take_buffers()

    def state_dict(self, *, names: str = "torch") -> dict[str, Any]:
        """Return a copy of every parameter and saved buffer by torch's name, tied ones too."""
        return {name: as_array(tensor).copy() for name, tensor in self.module.state_dict().items()}

    def load_state_dict(
        self, state: Mapping[str, Any], strict: bool = True, *, names: str = "torch"
    ) -> None:
        """Copy arrays or tensors into the parameters and buffers of torch's names, the only ones.

        Raises
        ------
        ShapeError
            When a name is missing or not known, or a shape differs.
        """
        tensors = {
            name: value if isinstance(value, torch.Tensor) else as_tensor(np.asarray(value))
            for name, value in state.items()
        }
        self._bind()
        try:
            self._module.load_state_dict(tensors, strict=strict)
        except RuntimeError as error:
            text = " ".join(str(error).split())
            raise ShapeError(f"TorchModule: {text}") from error
        self._put_parameters()
        self._put_buffers()

    # --- torch's tensors and ours

    def _refuse(self, name: str, tensor: Any) -> None:
        lazy = isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin)
        if lazy or tensor.is_complex() or tensor.layout != torch.strided:
            found = "lazy" if lazy else f"{tensor.dtype}, {tensor.layout}"
            raise SettingsError(
                f"TorchModule: {name}: expected a dense tensor of real numbers, found {found}; "
                "call the module once before if it is lazy"
            )

    def _unbind(self) -> None:
        self._bound: list[tuple[Any, Any, Any]] = []
        self._buffers: list[tuple[str, Buffer, dict[str, Any], str]] = []
        self._compiled: Any = None
        self._draws: bool | None = None

    def _bind(self) -> None:
        """Let torch's parameters be views of ours, if they are not."""
        held = self.__dict__
        if not self._bound or any(
            held[n].data is not d or held[n].grad is not g
            for n, (_, d, g) in zip(self._names, self._bound, strict=True)
        ):
            _ = self.vector  # joins parameters that are not yet
            theirs = dict(self._module.named_parameters())
            self._bound = []
            for name in self._names:
                own, parameter = held[name], theirs[name]
                if parameter.dtype == torch.float32:
                    parameter.data = torch.from_numpy(own.data)
                    parameter.grad = torch.from_numpy(own.grad) if own.grad is not None else None
                elif parameter.shape != own.data.shape:
                    parameter.data = torch.empty(own.data.shape, dtype=parameter.dtype)
                self._bound.append((parameter, own.data, own.grad))
            self._buffers = []
            for name in self._buffer_names:
                owner, _, key = name.rpartition(".")
                # In torch's own mapping, since forward may put another tensor there.
                theirs = self._module.get_submodule(owner)._buffers
                self._buffers.append((name, held[name], theirs, key))
        for name, (parameter, data, grad) in zip(self._names, self._bound, strict=True):
            trained = held[name].requires_grad
            if parameter.requires_grad != trained:
                parameter.requires_grad_(trained)
            if parameter.dtype != torch.float32:
                parameter.data.copy_(torch.from_numpy(data))
                parameter.grad = None
            elif parameter.grad is None and grad is not None:
                parameter.grad = torch.from_numpy(grad)

    def _take_buffers(self) -> None:
        """Copy our buffers to torch's; one that nobody has changed keeps its very bits."""
        for name, own, held, key in self._buffers:
            values, first, theirs = own.data, self._first[name], held[key].detach()
            if np.allclose(values, first, rtol=SAME, atol=0):
                values[...] = first  # an average of equal numbers is rounded
            if not theirs.is_floating_point():
                values = np.asarray(np.rint(values))
            theirs.copy_(torch.from_numpy(values))

    def _put_buffers(self) -> None:
        for name, own, held, key in self._buffers:
            theirs = held[key]
            if tuple(theirs.shape) != own.data.shape:
                raise ShapeError(
                    f"TorchModule: buffer {name}: expected shape {own.data.shape}, as before, "
                    f"found {tuple(theirs.shape)}; register it with persistent=False if it is no "
                    "state"
                )
            own.data[...] = as_array(theirs)
            if not theirs.is_floating_point() and np.abs(own.data).max(initial=0) > LARGEST_COUNT:
                raise SettingsError(
                    f"TorchModule: buffer {name}: expected whole numbers up to {LARGEST_COUNT}, "
                    "found larger ones, which float32 cannot keep; register it with "
                    "persistent=False if it is constant"
                )

    def _put_parameters(self) -> None:
        for parameter, data, _ in self._bound:
            if parameter.dtype != torch.float32:
                data[...] = as_array(parameter)

    # --- a pass

    def _call(self, given: Sequence[Any], names: Sequence[str]) -> Any:
        """Return what the module returns; the last inputs are given by name."""
        ordered = given[: len(given) - len(names)]
        named = dict(zip(names, given[len(ordered) :], strict=True))
        module = self._module
        if self._compile:
            if self._compiled is None:
                self._compiled = torch.compile(module)
            module = self._compiled
        if self.training and self._draws is not False:
            with drawing_from(*next_draw()):
                before = torch.random.get_rng_state()
                found = module(*ordered, **named)
                # A pass that draws nothing says that no other does.
                self._draws = not torch.equal(before, torch.random.get_rng_state())
        else:
            found = module(*ordered, **named)
        if self.training:
            self._put_buffers()
        return found

    def _recorded(
        self, inputs: Sequence[Any], given: Sequence[Any], results: Sequence[Any]
    ) -> list[Tensor]:
        """Return results on the tape, whose backward is torch's."""
        sources = [
            ((x._node, x._slot) if x._node is not None else x) if wants_grad(x) else None
            for x in inputs
        ]
        differentiable = [r.requires_grad for r in results]

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
                for source, tensor in zip(sources, given, strict=True)
            )

        node = Node(sources, len(results), backward) if any(differentiable) else None
        tensors = [Tensor(as_array(r)) for r in results]
        for slot, tensor in enumerate(tensors):
            tensor._node, tensor._slot = node, slot
        return tensors

    # --- pickled, and copied

    def __getstate__(self) -> dict[str, Any]:
        """Leave out torch's own weights: they are ours."""
        bound, state = self._bound, super().__getstate__()
        memo: dict[int, Any] = {}
        for parameter in self._module.parameters():
            empty = torch.empty(0, dtype=parameter.dtype)
            memo[id(parameter)] = torch.nn.Parameter(empty, parameter.requires_grad)
        grads = [parameter.grad for parameter, _, _ in bound]
        try:
            state["_module"] = copy.deepcopy(self._module, memo)
        finally:
            for (parameter, _, _), grad in zip(bound, grads, strict=True):
                parameter.grad = grad
        return {**state, "_bound": [], "_buffers": [], "_compiled": None, "_draws": None}


def _constants(module: Any) -> set[str]:
    """Return the names of buffers that are not saved with the module."""
    return {
        f"{prefix}.{name}" if prefix else name
        for prefix, inner in module.named_modules()
        for name in inner._non_persistent_buffers_set
    }


def _tensors(found: Any, output: str | None) -> Iterator[Any]:
    """Yield the tensors of a result: a tensor, or a sequence, mapping or object of such."""
    if output is not None:
        found = found[output] if isinstance(found, Mapping) else getattr(found, output)
    if isinstance(found, torch.Tensor):
        yield found
    elif isinstance(found, Mapping):
        yield from (t for value in found.values() for t in _tensors(value, None))
    elif isinstance(found, (tuple, list)):
        yield from (t for value in found for t in _tensors(value, None))
    elif found is not None:
        raise SettingsError(
            f"TorchModule: expected the module to return tensors, found {type(found).__name__}; "
            "name the field that is the result by output="
        )


def _as_found(results: Sequence[Tensor], found: Any, output: str | None) -> Any:
    """Return results as they came: one alone, those of a mapping of tensors by name, or a tuple."""
    if len(results) == 1:
        return results[0]
    named = output is None and isinstance(found, Mapping)
    if named and all(isinstance(value, torch.Tensor) for value in found.values()):
        return dict(zip(found, results, strict=True))
    return tuple(results)
