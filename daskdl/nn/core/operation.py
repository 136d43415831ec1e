"""Layers that are one operation of one array, and the examples in their docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import make_dataclass
from typing import Any, ClassVar, dataclass_transform

from daskdl.nn.core.module import Module
from daskdl.tensor import Tensor


@dataclass_transform(eq_default=False)
class _OfOperation(Module, pure=True):
    """Base of layers that are one operation; the operation's settings are their attributes.

    Fields of the class replace a constructor that only keeps its arguments. A subclass names the
    operation, or defines ``forward``. Its ``values`` at some numbers become the example in its
    docstring.
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
            cls._operation, cls._settings = staticmethod(operation), keep_fields(cls)
        if values:
            call = f"nn.{cls.__name__}()(np.array([[{at}]], np.float32)).data.round(3)"
            add_example(cls, f">>> {call}\narray([[{values}]], dtype=float32)")

    def forward(self, x: Any) -> Tensor:
        """Apply the operation."""
        settings = {name: getattr(self, name) for name in self._settings}
        return type(self)._operation(x, **settings)


def keep_fields(cls: type) -> tuple[str, ...]:
    """Give a class with fields a constructor that keeps them; return its arguments' names."""
    kinds = inspect.get_annotations(cls)
    if kinds:
        made: Any = make_dataclass(cls.__name__, [(n, k, vars(cls)[n]) for n, k in kinds.items()])
        setattr(cls, "__init__", made.__init__)  # noqa: B010
    return tuple(inspect.signature(cls.__init__).parameters)[1:]  # type: ignore[misc]


def add_example(cls: type, example: str) -> None:
    """Append an example to the docstring of a class."""
    cls.__doc__ = f"{inspect.cleandoc(cls.__doc__ or '')}\n\nExamples\n--------\n{example}\n"
