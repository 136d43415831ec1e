"""The tree of a network's modules, and its representation."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from html import escape
from typing import Any, ClassVar, Self, TypeVar

from numpy.ma import MaskedArray

from daskdl.errors import ShapeError
from daskdl.masked import unmasked
from daskdl.nn.core.arguments import each
from daskdl.nn.core.parameter import Buffer, Frozen, Parameter

Kind = TypeVar("Kind", "Parameter", "Buffer")
WEIGHTS = (Parameter, Frozen)


class Structure:
    """Base of modules: finds a module's parts among its attributes.

    Code that walks over a model, such as its summary, needs only this.
    """

    training: bool = True
    #: Whether ``forward``, in inference, looks at the shape of its inputs alone and never at their
    #: numbers, so that a recorded prediction is right for every input of that shape. A class
    #: outside of daskdl does not inherit it: ``class Mine(nn.Module, pure=True)`` declares it.
    pure: ClassVar[bool] = False

    def forward(self, *inputs: Any, **settings: Any) -> Any:
        """Compute the module's result; subclasses define the inputs."""
        raise NotImplementedError(f"{type(self).__name__} has to define forward()")

    def __call__(self, *inputs: Any, **settings: Any) -> Any:
        """Compute the module's result: :meth:`forward`; masked floats are NaN."""
        if MaskedArray in map(type, (*inputs, *settings.values()) if settings else inputs):
            unmask = functools.partial(unmasked, type(self).__name__)
            inputs, settings = each(unmask, inputs), each(unmask, settings)
        try:
            return self.forward(*inputs, **settings)
        except TypeError:
            takes = inspect.signature(type(self).forward)
            try:
                takes.bind(self, *inputs, **settings)
            except TypeError as error:
                names = ", ".join([*takes.parameters][1:])
                raise ShapeError(
                    f"{type(self).__name__}: expected inputs ({names}), found {len(inputs)} of them"
                    + "".join(f" and {name}" for name in settings)
                ) from error
            raise

    def modules(self, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """Yield (dotted name, module) of this module and all inside it, outermost first."""
        waiting = [(prefix, self)]  # nested generators for each level take twice as long
        while waiting:
            name, module = waiting.pop()
            yield name, module
            before = f"{name}." if name else ""
            waiting += [(before + n, child) for n, child in module._children()][::-1]

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
        """Yield (dotted name, parameter), in the order of :attr:`flat`.

        A parameter that several modules share has its first name. Tables that are trained by rows
        are included.
        """
        return self._named(Parameter)

    def named_buffers(self) -> Iterator[tuple[str, Buffer]]:
        """Yield (dotted name, buffer), in the order of :attr:`flat_buffers`."""
        return self._named(Buffer)

    def _named(self, kind: type[Kind]) -> Iterator[tuple[str, Kind]]:
        return ((name, value) for name, value in self.held() if isinstance(value, kind))

    def held(self) -> Iterator[tuple[str, Parameter | Buffer | Frozen]]:
        """Yield (dotted name, tensor) of parameters, buffers and frozen weights, each once."""
        seen = set()
        for prefix, module in self.modules():
            for name, value in module.__dict__.items():
                if isinstance(value, (Parameter, Buffer, Frozen)) and id(value) not in seen:
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


def replace_module(model: Any, name: str, new: Any) -> Any:
    """Replace the module with this dotted name, "" for the model itself; return the model."""
    if not name:
        return new
    parent, _, last = name.rpartition(".")
    inside = dict(model.modules())
    if parent in inside:
        setattr(inside[parent], last, new)
    else:
        owner, _, attribute = parent.rpartition(".")  # a member of a list or tuple
        members = getattr(inside[owner], attribute)
        replaced = [new if i == int(last) else member for i, member in enumerate(members)]
        setattr(inside[owner], attribute, type(members)(replaced))
    return model


#: Most modules in the table; the first ones are shown.
MOST = 60


def of_module(model: Structure) -> str:
    """Return an HTML table of each module's name, its layer and its parameters."""
    rows, seen = [], set[int]()
    for name, module in model.modules():
        parameters = [
            p for p in vars(module).values() if isinstance(p, WEIGHTS) and id(p) not in seen
        ]
        seen.update(map(id, parameters))
        line = repr(module).split("\n")[0].removesuffix("(") if name else type(module).__name__
        size = sum(p.data.size for p in parameters)
        frozen = " (frozen)" if parameters and not any(p.requires_grad for p in parameters) else ""
        rows.append((name or "the model", line, f"{size:,}{frozen}" if parameters else ""))
    total = sum(p.data.size for _, p in model.held() if isinstance(p, WEIGHTS))
    cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows[:MOST])
    body = "".join(f"<tr>{line}</tr>" for line in cells)
    more = f"<p>and {len(rows) - MOST} more modules</p>" if len(rows) > MOST else ""
    return (
        f"<table><caption>{escape(type(model).__name__)} of {total:,} parameters</caption>"
        "<thead><tr><th>name</th><th>layer</th><th>parameters</th></tr></thead>"
        f"<tbody>{body}</tbody></table>{more}"
    )
