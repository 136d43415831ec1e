"""The state of a torch module: its parameters and buffers, and changes that a user makes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from daskdl.errors import SettingsError, ShapeError
from daskdl.nn.core.module import Module
from daskdl.nn.core.parameter import Buffer, Parameter
from daskdl.torch.library import as_array, torch

logger = logging.getLogger("daskdl.torch.module")

#: Largest counter among the buffers: float32 is exact for whole numbers up to it.
LARGEST_COUNT = 1 << 24

#: Largest relative difference from the first value at which a buffer counts as unchanged.
SAME = 1e-6

#: Held while the state of a torch module is read, as several threads may use the module.
taking = threading.RLock()


class TorchState(Module):
    """A Module with the parameters and buffers of a torch module, which it uses without a copy."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self._module = module
        #: Whether a user may hold the torch module; copies for threads and workers are private.
        self._theirs = True
        self._names: list[str] = []  # of parameters, in our order
        self._buffer_names: list[str] = []
        #: For each buffer its numbers as float32, and a copy of the torch buffer at that time.
        self._first: dict[str, Any] = {}
        self._exact: dict[str, Any] = {}
        #: State of the torch module when it was last read or written.
        self._seen: dict[str, Any] = {}
        #: Buffers of a user's classes with a warning that they change.
        self._warned: set[str] = set()
        self._mode: bool | None = None
        #: Names of parts that stay in eval() during training.
        self._still: frozenset[str] = frozenset()
        self._read()
        self._bind()

    def attributes(self) -> Iterator[dict[str, Any]]:
        """Yield the attributes of this module and of all torch modules in it."""
        yield {n: v for n, v in vars(self).items() if n[0] != "_" or n in ("_module", "_output")}
        yield self._exact
        for part in self._module.modules():
            yield vars(part)

    def take_over(self) -> None:
        """Take over changes of the torch module since it was last read."""
        if not self._theirs:
            return
        with taking:
            self._take()

    def _take(self) -> None:
        parameters, buffers = _state_of(self._module)
        names = list(parameters), list(buffers)
        shapes = [tuple(t.shape) for t in (*parameters.values(), *buffers.values())]
        known = (*self._names, *self._buffer_names)
        if names != (self._names, self._buffer_names) or shapes != [
            self.__dict__[name].data.shape for name in known
        ]:
            self._read()
        for name, parameter in parameters.items():
            ours = self.__dict__[name]
            if parameter.requires_grad != self._seen.get(name, parameter.requires_grad):
                ours.requires_grad = parameter.requires_grad
            # The same memory, or equal after rounding, has our numbers.
            shared = parameter.data_ptr() == ours.data.ctypes.data
            rounded = torch.from_numpy(ours.data).to(parameter.dtype)
            if not (shared or _equal(parameter.detach(), rounded)):
                ours.data[...] = as_array(parameter)
                self._bound.clear()
        for name, buffer in buffers.items():
            if name in self._seen and not _equal(buffer, self._seen[name]):
                self.__dict__[name].data[...] = as_array(buffer)
                self._remember(name, buffer)
        self._look_at_modes()
        self._bind()

    def _read(self) -> None:
        """Create parameters and buffers from the torch module's."""
        for name in (*self._names, *self._buffer_names):
            delattr(self, name)
        parameters, buffers = _state_of(self._module)
        for name, parameter in parameters.items():
            self._refuse(name, parameter)
            setattr(self, name, Parameter(as_array(parameter).copy(), parameter.requires_grad))
        for name, buffer in buffers.items():
            self._refuse(name, buffer)
            setattr(self, name, Buffer(as_array(buffer).copy()))
            self._remember(name, buffer)
        self._names, self._buffer_names = list(parameters), list(buffers)
        floats = {p.dtype for p in parameters.values() if p.is_floating_point()}
        self._dtype = next(iter(floats)) if len(floats) == 1 else torch.float32
        self._unbind()

    def _remember(self, name: str, buffer: Any) -> None:
        """Record a buffer of the torch module; our buffer has its numbers."""
        self._first[name] = self.__dict__[name].data.copy()
        self._exact[name] = self._seen[name] = buffer.detach().clone()

    def _look_at_modes(self) -> None:
        """Record the parts that a user has put into eval(), unless all modes are as we set them."""
        modes = {name: part.training for name, part in self._module.named_modules()}
        ours = {name: bool(self._mode) and name not in self._still for name in modes}
        if self._mode is not None and modes == ours:
            return
        self._mode = None
        trained = self._module.training
        self._still = frozenset(name for name, on in modes.items() if trained and not on)

    def _set_mode(self) -> None:
        if self._mode is self.training and self._module.training is self.training:
            return
        self._mode = self.training
        self._module.train(self.training)
        for name in self._still:
            self._module.get_submodule(name).training = False

    def _refuse(self, name: str, tensor: Any) -> None:
        lazy = isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin)
        elsewhere = tensor.device.type != "cpu"
        if lazy or elsewhere or tensor.is_complex() or tensor.layout != torch.strided:
            described = "lazy" if lazy else f"{tensor.dtype}, {tensor.layout}, {tensor.device}"
            raise SettingsError(
                f"TorchModule: {name}: expected a dense tensor of real numbers on the CPU, found "
                f"{described}; call the module once before if it is lazy, and module.cpu() if it "
                "is on another device"
            )
        if name.startswith("_") or hasattr(type(self), name):
            raise SettingsError(
                f"TorchModule: expected parameters with names of their own, found {name!r}, which "
                "a Module has for something else; wrap torch.nn.Sequential(module), in which it is "
                f"called '0.{name}'"
            )

    def _unbind(self) -> None:
        self._bound: list[tuple[Any, Any, Any]] = []
        self._buffers: list[tuple[str, Buffer, dict[str, Any], str]] = []
        self._compiled: Any = None
        self._draws: bool | None = None

    def _bind(self) -> None:
        """Make torch's parameters views of ours, unless they are already."""
        tensors = self.__dict__
        if not self._bound or any(
            tensors[n].data is not d or tensors[n].grad is not g
            for n, (_, d, g) in zip(self._names, self._bound, strict=True)
        ):
            _ = self.vector  # joins the parameters to one vector
            theirs = dict(self._module.named_parameters())
            self._bound = []
            for name in self._names:
                ours, parameter = tensors[name], theirs[name]
                if parameter.dtype == torch.float32:
                    parameter.data = torch.from_numpy(ours.data)
                    parameter.grad = torch.from_numpy(ours.grad) if ours.grad is not None else None
                elif parameter.shape != ours.data.shape:
                    parameter.data = torch.empty(ours.data.shape, dtype=parameter.dtype)
                self._bound.append((parameter, ours.data, ours.grad))
            self._buffers = []
            for name in self._buffer_names:
                owner, _, key = name.rpartition(".")
                # Keep torch's own mapping, since forward may replace the tensor there.
                theirs = self._module.get_submodule(owner)._buffers
                self._buffers.append((name, tensors[name], theirs, key))
        for name, (parameter, data, grad) in zip(self._names, self._bound, strict=True):
            trained = tensors[name].requires_grad
            if parameter.requires_grad != trained:
                parameter.requires_grad_(trained)
            self._seen[name] = trained
            if parameter.dtype != torch.float32:
                parameter.data.copy_(torch.from_numpy(data))
                parameter.grad = None
            elif parameter.grad is None and grad is not None:
                parameter.grad = torch.from_numpy(grad)

    def _take_buffers(self) -> None:
        """Copy our buffers to torch's; unchanged ones keep their bits."""
        for name, buffer, theirs_by_key, key in self._buffers:
            values, first, theirs = buffer.data, self._first[name], theirs_by_key[key].detach()
            if np.allclose(values, first, rtol=SAME, atol=0, equal_nan=True):
                values[...] = first  # an average of equal numbers is rounded
                theirs.copy_(self._exact[name])
            else:
                self._warn_of(name, values - first, np.inf)
                rounded = values if theirs.is_floating_point() else np.asarray(np.rint(values))
                theirs.copy_(torch.from_numpy(rounded))
            if self._theirs:
                self._seen[name] = theirs.clone()

    def _put_buffers(self) -> None:
        for name, buffer, theirs_by_key, key in self._buffers:
            theirs = theirs_by_key[key]
            if tuple(theirs.shape) != buffer.data.shape:
                raise ShapeError(
                    f"TorchModule: buffer {name}: expected shape {buffer.data.shape}, as before, "
                    f"found {tuple(theirs.shape)}; register it with persistent=False if it is no "
                    "state"
                )
            if _equal(theirs, self._exact[name]):
                buffer.data[...] = self._first[name]
                continue
            now = as_array(theirs)
            self._warn_of(name, now - buffer.data)
            buffer.data[...] = now
            if self._theirs:
                self._seen[name] = theirs.detach().clone()
            large = np.abs(buffer.data).max(initial=0) > LARGEST_COUNT
            if large and not theirs.is_floating_point():
                raise SettingsError(
                    f"TorchModule: buffer {name}: expected whole numbers up to {LARGEST_COUNT}, "
                    "found larger ones, which float32 cannot keep; register it with "
                    "persistent=False if it is constant"
                )

    def _warn_of(self, name: str, change: np.ndarray[Any, Any], most: float = 1) -> None:
        """Warn once about a user's buffer that changes, unless it is a counter of passes."""
        owner = type(self._module.get_submodule(name.rpartition(".")[0]))
        counts = change.size == 1 and 0 <= change <= most and change == np.rint(change)
        theirs = all(c.__module__.startswith(("torch.nn.", "builtins")) for c in owner.__mro__)
        if not (counts or theirs or name in self._warned):
            self._warned.add(name)
            logger.warning(
                "TorchModule: forward changes the buffer %s: the mean over shards is kept, in "
                "float32, no sum, count or extreme; fit(shards=1) has what a whole batch gives",
                name,
            )


def _state_of(module: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters and persistent buffers of a torch module, by name."""
    constant = {
        f"{prefix}.{name}" if prefix else name
        for prefix, inner in module.named_modules()
        for name in inner._non_persistent_buffers_set
    }
    buffers = {n: b for n, b in module.named_buffers() if n not in constant}
    return dict(module.named_parameters()), buffers


def _equal(a: Any, b: Any) -> bool:
    """Return whether two tensors are equal, where NaN equals NaN."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    same = torch.eq(a, b)
    return bool(same.all()) or bool((same | (torch.isnan(a) & torch.isnan(b))).all())
