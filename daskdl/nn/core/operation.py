"""Layers that are one operation of one array, and the examples in their docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from daskdl.nn.core.module import Module
from daskdl.tensor import Tensor


class _OfOperation(Module, pure=True):
    """Base of layers that are one operation; it takes what the constructor keeps as attributes.

    A subclass names the operation, or defines ``forward``, and says the ``values`` that it gives
    at some numbers: they become the example in its docstring.
    """

    _operation: ClassVar[Callable[..., Any]]
    _settings: ClassVar[tuple[str, ...]]

    def __init_subclass__(
        cls,
        *,
        operation: Callable[..., Any] | None = None,
        values: str = "",
        at: str = "-1.0, 0.5, 2.0",
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        if operation is not None:
            cls._operation, cls._settings = staticmethod(operation), arguments_of(cls)
        if values:
            call = f"nn.{cls.__name__}()(np.array([[{at}]], np.float32)).data.round(3)"
            add_example(cls, f">>> {call}\narray([[{values}]], dtype=float32)")

    def forward(self, x: Any) -> Tensor:
        """Apply the operation."""
        settings = {name: getattr(self, name) for name in self._settings}
        return type(self)._operation(x, **settings)


def arguments_of(cls: type) -> tuple[str, ...]:
    """Return the names of a constructor's arguments."""
    return tuple(inspect.signature(cls.__init__).parameters)[1:]  # type: ignore[misc]


def add_example(cls: type, example: str) -> None:
    """Put an example at the end of the docstring of a class."""
    cls.__doc__ = f"{inspect.cleandoc(cls.__doc__ or '')}\n\nExamples\n--------\n{example}\n"
