"""The structure of a module: the modules inside it, and their parameters and buffers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self, TypeVar

from daskdl.nn.parameter import Buffer, Parameter

Held = TypeVar("Held", "Parameter", "Buffer")


class Structure:
    """Base of modules: finds by attribute what a module consists of.

    What walks over a model, such as its summary, needs no more of it than this.
    """

    training: bool = True

    def forward(self, *inputs: Any, **settings: Any) -> Any:
        """Compute the module's result; subclasses say what of."""
        raise NotImplementedError(f"{type(self).__name__} has to define forward()")

    def __call__(self, *inputs: Any, **settings: Any) -> Any:
        """Compute the module's result: :meth:`forward`."""
        return self.forward(*inputs, **settings)

    def modules(self, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """Yield (dotted name, module) of this module and all inside it, outermost first."""
        yield prefix, self
        for name, value in self._children():
            yield from value.modules(f"{prefix}.{name}" if prefix else name)

    def _children(self) -> Iterator[tuple[str, Any]]:
        for name, value in self.__dict__.items():
            if name.startswith("_"):
                continue
            if isinstance(value, Structure):
                yield name, value
            elif isinstance(value, (list, tuple)):
                for i, item in enumerate(value):
                    if isinstance(item, Structure):
                        yield f"{name}.{i}", item

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Yield (dotted name, parameter), in the order in which they lie in :attr:`flat`.

        A parameter that several modules share has the first of its names. Tables that are trained
        by rows are among them.
        """
        return self._named(Parameter)

    def named_buffers(self) -> Iterator[tuple[str, Buffer]]:
        """Yield (dotted name, buffer), in the order in which they lie in :attr:`flat_buffers`."""
        return self._named(Buffer)

    def _named(self, kind: type[Held]) -> Iterator[tuple[str, Held]]:
        return ((name, value) for name, value in self.held() if isinstance(value, kind))

    def held(self) -> Iterator[tuple[str, Parameter | Buffer]]:
        """Yield (dotted name, tensor), parameters and buffers as they come; each tensor once."""
        seen = set()
        for prefix, module in self.modules():
            for name, value in module.__dict__.items():
                if isinstance(value, (Parameter, Buffer)) and id(value) not in seen:
                    seen.add(id(value))
                    yield f"{prefix}.{name}" if prefix else name, value

    def parameters(self) -> Iterator[Parameter]:
        """Yield the parameters, in the order of :attr:`flat`."""
        return (parameter for _, parameter in self.named_parameters())

    def train(self, mode: bool = True) -> Self:
        """Set every module's ``training``."""
        for _, module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Set every module to inference."""
        return self.train(False)
