"""Module: parameters, buffers and submodules by attribute, all parameters in one flat vector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from daskdl.errors import ShapeError
from daskdl.kernels.vectors.arithmetic import copied, copy_to
from daskdl.names import DONE_BY, check_constructor
from daskdl.nn.core.joined import Joined, Vector
from daskdl.nn.core.parameter import Buffer, Frozen, Parameter
from daskdl.nn.core.predicting import Predicting
from daskdl.nn.core.state import set_requires_grad
from daskdl.nn.core.structure import Structure, of_module
from daskdl.nn.core.summary import Summary, summarise
from daskdl.upper import UPPER

__all__ = ["Module"]


class Module(Structure, Predicting):
    """Base of layers, containers and models.

    An attribute that is a :class:`Parameter`, a :class:`Buffer` or a Module is registered. The
    parameters of the outermost module are views of one vector, :attr:`flat`, and their gradients of
    :attr:`flat_grad`: the weights of a model are one array to send, slice and update. Its buffers
    are views of :attr:`flat_buffers`. Tables that are trained by rows are separate arrays,
    :attr:`tables`.

    Subclasses define ``forward``. A model file has a subclass's name and its constructor's
    arguments, which must be plain data or Modules.

    Examples
    --------
    >>> class Twice(nn.Module):
    ...     def __init__(self, n):
    ...         self.inner = nn.Linear(n, n)
    ...     def forward(self, x):
    ...         return self.inner(self.inner(x))
    >>> Twice(3).predict(np.ones((2, 3), np.float32)).shape
    (2, 3)
    """

    registry: ClassVar[dict[str, type[Module]]] = {}
    registered: ClassVar[str] = "Module"
    #: A sentence that a fit logs when it starts: a guarantee that such a module does not give.
    caveat: str = ""
    #: Fewest samples that pass through at a time in training.
    fewest_samples: ClassVar[int] = 1
    #: A slot, not an attribute, since :class:`Joined` refers to the attributes.
    __slots__ = ("_joined",)
    _joined: Joined
    _arguments: tuple[tuple[Any, ...], dict[str, Any]]

    def __init_subclass__(cls, *, pure: bool | None = None, **kwargs: Any) -> None:
        """Register the class for model files: by its name, outside of daskdl with its module.

        A class that defines nothing does not replace another one before it is used: unpickling a
        notebook's class makes such classes, and drops them if the class itself exists.

        Parameters
        ----------
        pure : bool, optional
            See :attr:`pure`.
        """
        super().__init_subclass__(**kwargs)
        defines = any(name == "__init__" or name[:2] != "__" for name in vars(cls))
        user = not cls.__module__.startswith("daskdl.")
        cls.registered = f"{cls.__module__}.{cls.__name__}" if user else cls.__name__
        if defines or cls.registered not in Module.registry:
            Module.registry[cls.registered] = cls
        if pure is not None:
            cls.pure = pure
        elif user and "pure" not in vars(cls):
            cls.pure = False  # its forward may look at numbers, whatever it inherits from

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Keep the constructor's arguments; a model file rebuilds the module from them."""
        check_constructor(cls, kwargs)
        if Module.registry.get(cls.registered) is not cls and cls is not Module:
            Module.registry[cls.registered] = cls
        self = super().__new__(cls)
        self.__dict__["_arguments"] = (args, kwargs)
        self._joined = Joined()
        return self

    def __init__(self) -> None:
        # Without this, unknown arguments would be accepted: object checks only one of __new__
        # and __init__.
        pass

    if not TYPE_CHECKING:  # mypy would accept any name

        def __getattr__(self, name: str) -> Any:
            """For methods of other libraries' models, name the one that does the same here."""
            if name in DONE_BY:
                raise AttributeError(
                    f"{type(self).__name__}: expected a method of a Module, found {name}; what "
                    f"does that here is {DONE_BY[name]}"
                )
            return object.__getattribute__(self, name)  # raises again as before

    if TYPE_CHECKING:  # all parts of a Module are Modules

        def modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
            """Yield (dotted name, module) of this module and all inside it, outermost first."""

    @property
    def tables(self) -> dict[str, Parameter]:
        """Tables that are trained by rows, by their dotted names."""
        return self._joined.update(self).tables

    def freeze(self, *names: str) -> Self:
        """Exclude parameters from training, also from a method's decay and momentum.

        Parameters
        ----------
        *names : str
            Names of parameters, or of modules for all their parameters, such as ``"layers.0"``;
            wildcards as in a shell, ``"*.bias"``. By default all parameters.

        Raises
        ------
        SettingsError
            When a name matches nothing.
        """
        set_requires_grad(self, names, False)
        return self

    def unfreeze(self, *names: str) -> Self:
        """Undo :meth:`freeze`, for the same names or for all."""
        set_requires_grad(self, names, True)
        return self

    def summary(
        self,
        input_shape: Sequence[int] | Sequence[Sequence[int]] | Mapping[str, Sequence[int]],
        dtype: str | Sequence[str] = "float32",
    ) -> Summary:
        """Return a table of all modules, with their results' shapes and their sizes.

        Parameters
        ----------
        input_shape : sequence of int, or a sequence or mapping of them for several inputs
            Shape of one sample, without the batch's axis.
        dtype : str, or one for each input
            Dtype of the inputs; ``"int64"`` for ids.
        """
        return summarise(self, input_shape, dtype)

    # --- one vector

    @property
    def joined(self) -> Joined:
        """The vectors of all numbers, checked once.

        A training step needs several vectors, and should check them only once.
        """
        return self._joined.update(self)

    @property
    def vector(self) -> Vector:
        """All parameters, then all buffers, float32 (n + m,): the numbers that a step changes.

        Each call returns the same array, until the module gets other parameters. It is without
        :attr:`tables`; :meth:`snapshot` includes them.
        """
        return self._joined.update(self).whole

    @property
    def flat(self) -> Vector:
        """All parameters except :attr:`tables`, float32 (n,); the parameters are views of it."""
        joined = self._joined.update(self)
        return joined.whole[: joined.grad.size]

    @property
    def flat_grad(self) -> Vector:
        """All gradients, float32 (n,), in the order of :attr:`flat`."""
        return self._joined.update(self).grad

    def share_vector(self, other: Module) -> None:
        """Share another model's vector: parameters and buffers become its views.

        Tables are not shared.
        """
        self._joined.update(self).share(other._joined.update(other))

    @property
    def flat_buffers(self) -> Vector:
        """All buffers, float32 (m,); the buffers are views of it."""
        return self.joined.buffers

    def load_vector(self, vector: Vector) -> None:
        """Copy ``vector`` (n + m,) into the parameters and buffers."""
        self._load("load_vector", self.vector, vector, "numbers")

    def load_flat(self, vector: Vector) -> None:
        """Copy ``vector`` (n,) into the parameters."""
        self._load("load_flat", self.flat, vector, "parameters")

    def _load(self, method: str, target: Vector, vector: Vector, of: str) -> None:
        self._check(method, target.size, vector, of)
        if vector.ctypes.data != target.ctypes.data or vector.dtype != target.dtype:
            target[:] = vector
        self._tell()

    def _check(self, method: str, size: int, vector: Vector, of: str) -> None:
        if vector.shape != (size,):
            raise ShapeError(
                f"{type(self).__name__}.{method}: expected a vector of {size} {of}, found "
                f"shape {vector.shape}"
                "; take one of a model of the same layers"
            )

    def snapshot(self) -> Vector:
        """Return a copy of all that training changes: :attr:`vector`, then the tables."""
        tables = (table.data.reshape(-1) for table in self.tables.values())
        return np.concatenate([self.vector, *tables])

    def restore(self, vector: Vector, copy: bool = True) -> None:
        """Undo :meth:`snapshot`.

        Parameters
        ----------
        vector : float32 (n + m + numbers of the tables,)
        copy : bool
            Whether to copy tables; otherwise they become views of ``vector``. After a copy modules
            are notified by :meth:`numbers_changed`.
        """
        joined = self._joined.update(self)
        whole, tables = joined.whole, joined.tables
        start, size = whole.size, whole.size + sum(t.data.size for t in tables.values())
        self._check("restore", size, vector, "numbers")
        copy_to(whole, vector[:start])
        for table in tables.values():
            stop = start + table.data.size
            values = vector[start:stop].reshape(table.shape)
            table.data = copied(values) if copy else values
            start = stop
        if copy:
            self._tell()

    def numbers_changed(self) -> None:
        """Note that numbers were changed from outside.

        Modules that keep numbers elsewhere, too, such as in another library, override it.
        """

    def attributes(self) -> Iterator[dict[str, Any]]:
        """Yield the attributes of this module, and of a wrapped one, that decide its results.

        Modules inside it yield their own.
        """
        yield vars(self)

    def take_over(self) -> None:
        """Take over changes of a wrapped module; see :func:`take_over`."""

    def _tell(self) -> None:
        for _, module in self.modules():
            module.numbers_changed()

    def zero_grad(self) -> None:
        """Set all gradients to zero, gradients of tables to None."""
        self.joined.zero_grad()

    # --- in and out

    def state_dict(self, *, names: str = "own") -> dict[str, NDArray[np.float32]]:
        """Return a copy of every parameter, buffer and frozen weight by its dotted name.

        With ``names="torch"`` they have PyTorch's names and layouts, as in torchvision.
        """
        if names == "torch":
            return UPPER["torch names"]().to_torch(self)
        return {name: tensor.data.copy() for name, tensor in self._state().items()}

    def _state(self) -> dict[str, Parameter | Buffer | Frozen]:
        return {**dict(self.named_parameters()), **dict(self.named_buffers()), **dict(self.held())}

    def load_state_dict(
        self, state: Mapping[str, ArrayLike], strict: bool = True, *, names: str = "own"
    ) -> None:
        """Copy arrays into the parameters and buffers of the same names.

        Parameters
        ----------
        state : mapping of dotted names to arrays
        strict : bool
            Whether model and ``state`` need the same names; else the common ones are copied.
        names : "own" or "torch"
            Whether names and layouts are PyTorch's, as from :func:`daskdl.interop.read`.

        Raises
        ------
        ShapeError
            When a name is missing or not known, or a shape differs. Then nothing is changed.
        """
        if names == "torch":
            state = UPPER["torch names"]().from_torch(self, state, strict)
        arrays = {name: np.asarray(value) for name, value in state.items()}
        tensors = self._state()
        problems = [
            f"{name} has shape {arrays[name].shape}, expected {tensors[name].shape}"
            for name in tensors.keys() & arrays.keys()
            if arrays[name].shape != tensors[name].shape
        ]
        if strict:
            problems += [f"{name} is missing" for name in tensors.keys() - arrays.keys()]
            problems += [
                f"{name} is not a parameter of it" for name in arrays.keys() - tensors.keys()
            ]
        if problems:
            raise ShapeError(f"{type(self).__name__}: {'; '.join(sorted(problems))}")
        for name in tensors.keys() & arrays.keys():
            tensors[name].data[...] = arrays[name]

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def __repr__(self) -> str:
        lines = [f"  ({name}): {child!r}".replace("\n", "\n  ") for name, child in self._children()]
        arguments, keywords = self._arguments
        parts = [repr(a) for a in arguments if not _holds_module(a)]
        parts += [f"{k}={v!r}" for k, v in keywords.items() if not _holds_module(v)]
        body = "".join(f"\n{line}" for line in lines)
        return f"{type(self).__name__}({', '.join(parts)}{body}{chr(10) if lines else ''})"

    def _repr_html_(self) -> str:
        return of_module(self)


def take_over(model: Module) -> None:
    """Make all modules of a model take over changes from outside, such as in torch's modules.

    A fit, an evaluation, a prediction and a save call it at their beginning.
    """
    for _, module in model.modules():
        module.take_over()


def _holds_module(value: Any) -> bool:
    return isinstance(value, Module) or (
        isinstance(value, (list, tuple)) and any(isinstance(item, Module) for item in value)
    )
