"""Predictor: a model that predicts batches in inference, without being changed."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import cloudpickle
import numpy as np
from numpy.typing import NDArray

from daskdl.data.nested import is_nested
from daskdl.data.ragged import PAD, Ragged
from daskdl.errors import DataError, SettingsError, ShapeError
from daskdl.kernels.runtime.precision import computing_in, resolved
from daskdl.kernels.runtime.threads import thread_budget
from daskdl.masked import unmasked
from daskdl.names import nearest
from daskdl.nn import Module
from daskdl.nn.core.arguments import as_arrays, as_inputs, call, each, parts_of
from daskdl.nn.core.module import take_over
from daskdl.nn.core.state import arrays, bytes_of, watched
from daskdl.nn.inference import Inference, constants_of, optimized
from daskdl.predict.arguments import fixed_batch, is_whole, takes_float64
from daskdl.tensor import Tensor

Array = NDArray[Any]

#: Wanted bytes of the largest array between two layers, which determine the batch size.
BATCH_BYTES = 32_000_000
#: Most samples in a batch without ``batch_size``.
LARGEST_BATCH = 8192


class _Reached(BaseException):
    """Ends a forward pass at the wanted layer."""


@dataclass(frozen=True, eq=False)
class Predictor:
    """A model that turns inputs into results, batch by batch.

    Each thread works on a copy of the model's structure, in inference. All copies share the
    weights, and those that :mod:`daskdl.nn.inference` has prepared for its kernels, so that a
    worker holds them once. The model itself is not changed. If its weights change, make a new
    predictor.

    Parameters
    ----------
    model : Module
    layer : str, optional
        Return the result of this inner layer instead of the model's own result.
    classes : bool
        Return the index of the largest score.
    batch_size : int, optional
        Samples that pass through the model together; by default :meth:`tried` chooses.
    threads : int, optional
        Arithmetic threads, by default the caller's.
    precision : str
        Precision of products, see :mod:`daskdl.kernels.runtime.precision`.
    part : str or int, optional
        Return only one of several results, by its name or number.
    token : str
        Identity of this predictor in Dask's keys; see :meth:`snapshot`.

    Examples
    --------
    >>> x = np.zeros((5, 3), np.float32)
    >>> predictor = Predictor(nn.Linear(3, 2), threads=1)
    >>> predictor(x).shape, Predictor(nn.Linear(3, 2), classes=True)(x).shape
    ((5, 2), (5,))
    """

    model: Module
    layer: str | None = None
    classes: bool = False
    batch_size: int | None = None
    threads: int | None = None
    token: str = ""
    precision: str = "float32"
    part: str | int | None = None
    #: The number of samples that are tried, the fewest that the model takes.
    few: int = field(default=1, init=False, repr=False)
    _idle: list[Module] = field(default_factory=list, repr=False)
    _inference: list[Inference] = field(default_factory=list, repr=False)
    #: Batch sizes that were tried, by the shapes and dtypes of a sample.
    _sizes: dict[tuple[Any, ...], int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        # Resolved once, not in each process that gets it: the order of sums could differ.
        object.__setattr__(self, "precision", resolved(self.precision))
        take_over(self.model)
        modules = dict(self.model.modules())
        object.__setattr__(self, "few", max(m.fewest_samples for m in modules.values()))
        names = [name for name in modules if name]
        if self.layer is not None and self.layer not in names:
            near = ", ".join(map(repr, nearest(self.layer, names)))
            raise SettingsError(
                f"embed: expected the name of a layer in {type(self.model).__name__}, which has "
                + (f"layers such as {near}" if near else "none")
                + f", found {self.layer!r}"
            )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_idle": [], "_inference": []}

    def __dask_tokenize__(self) -> object:
        return type(self).__name__, self.token or id(self)

    def __sizeof__(self) -> int:  # Dask uses it to account for a worker's memory
        arrays = (*(tensor.data for tensor in _tensors(self.model)), *constants_of(self.model))
        return sum(getattr(array, "nbytes", 0) for array in arrays)

    def snapshot(self) -> Predictor:
        """Return a predictor for sending, whose model later changes do not affect."""
        try:
            payload = cloudpickle.dumps(self.model)
        except Exception as error:
            raise SettingsError(
                f"predict: expected a model that can be pickled and sent to workers, found "
                f"{type(self.model).__name__} ({error})"
                "; define its classes at the top of a module, without open files or locks"
            ) from error
        settings = (
            self.layer, self.classes, self.batch_size, self.threads, self.precision, self.part,
        )  # fmt: skip
        token = hashlib.blake2b(payload + repr(settings).encode(), digest_size=12).hexdigest()
        return replace(self, model=cloudpickle.loads(payload), token=token, _idle=[], _inference=[])

    def __call__(self, x: Any) -> Any:
        """Return the results of inputs (N, ...): an array (N, ...), or a tuple or dict of them.

        Inputs of a Graph that cannot be cut, such as a flag, are passed whole.
        """
        if is_whole(self.model, x):
            with self.at_work() as model:
                result = call(model, each(np.asarray, x)) if self.layer is None else self._until(
                    self.layer, model, each(np.asarray, x)
                )  # fmt: skip
            return _one(self._classified(_parts(result)))
        x = prepared(x, takes_float64(self.model))
        return self.over(lambda start, stop: each(lambda a: a[start:stop], x), rows(x))

    def over(self, batch: Callable[[int, int], Any], n: int) -> Any:
        """Return the results of ``n`` samples; ``batch(a, b)`` returns the samples from a to b."""
        results = dict[Any, Array]()
        with self.at_work() as model:
            size, stop = self.batch_size or fixed_batch(self.model), 0
            if size is None:
                # Tried samples are computed again in their batch: results may depend on the batch.
                few = min(n, self.few)
                size = self._fitting(model, batch(0, few)) if n > few else max(1, n)
            while stop < n or not results:
                start, stop = stop, min(stop + size, n)
                parts = self._pass(model, batch(start, stop))
                if not results:
                    results = {k: np.empty((n, *p.shape[1:]), p.dtype) for k, p in parts.items()}
                for name, part in parts.items():
                    results[name][start:stop] = part
        return _one(results)

    def tried(self, some: Any) -> tuple[Predictor, Any]:
        """Return this predictor with a batch size, and results of at least :attr:`few` samples.

        By default the largest array between two layers takes about 32 MB: small models get large
        batches, with fewer calls, and large models small ones, which stay in the caches.
        """
        with self.at_work() as model:
            parts, fitting = self._try(model, some)
        return self.in_batches(self.batch_size or fitting), _one(parts)

    def in_batches(self, size: int) -> Predictor:
        """Return this predictor with batches of ``size`` samples."""
        return replace(self, batch_size=size, token=f"{self.token}-{size}")

    def _fitting(self, model: Module, some: Any) -> int:
        """Return the batch size for such samples, after trying them once."""
        like = tuple((part.shape[1:], part.dtype) for part in parts_of(some))
        if like not in self._sizes:
            self._sizes[like] = self._try(model, some)[1]
        return self._sizes[like]

    def _try(self, model: Module, some: Any) -> tuple[dict[Any, Array], int]:
        largest, n = [part.nbytes for part in parts_of(some)], rows(some)

        def weigh(name: str, module: Module, inputs: Any, result: Any) -> None:
            largest.extend(bytes_of(result))

        with watched(model, weigh):
            parts = self._pass(model, some, watching=True)
        return parts, max(1, min(LARGEST_BATCH, n * BATCH_BYTES // max(1, *largest)))

    @contextmanager
    def at_work(self, joined: bool = True) -> Iterator[Module]:
        """Yield a copy of the model, in inference, for the caller alone.

        Unless operations are ``joined`` for speed, each is computed as in training, so that an
        evaluation has the bits of a fit's validation.
        """
        try:
            model = self._idle.pop()
        except IndexError:
            model = copy_of(self.model).eval()
        with ExitStack() as stack:
            stack.enter_context(computing_in(self.precision))
            if joined:
                stack.enter_context(optimized(self._shared().prepared))
            if self.threads is not None:
                stack.enter_context(thread_budget(self.threads))
            yield model
            self._idle.append(model)  # not after an error in the middle of a pass

    def _shared(self) -> Inference:
        """Return the prepared weights and programs, which all threads share."""
        if not self._inference:
            self._inference.append(Inference(self.model))
        return self._inference[0]

    def _pass(self, model: Module, x: Any, watching: bool = False) -> dict[Any, Array]:
        """Return the results of a batch (n, ...); empty arrays of the same shape without samples.

        Keys are names if the model returns a mapping, else numbers.
        """
        x = prepared(x, takes_float64(self.model))
        n = rows(x)
        if not n:
            one = each(lambda a: np.zeros((self.few, *a.shape[1:]), a.dtype), x)
            return {name: part[:0] for name, part in self._pass(model, one).items()}
        if self.layer is not None:
            result = self._until(self.layer, model, x)
        elif watching or not isinstance(x, np.ndarray):
            result = call(model, x)
        else:
            result = self._shared().run(model, x)
        parts = _parts(result)
        for part in parts.values():
            if part.shape[:1] != (n,):
                where = type(model).__name__ if self.layer is None else f"layer {self.layer}"
                raise ShapeError(
                    f"{where}: expected a result for each of {n} samples, found shape "
                    f"{part.shape}"
                    "; let forward keep the samples on the first axis"
                )
        return self._classified(parts)

    def _classified(self, parts: dict[Any, Array]) -> dict[Any, Array]:
        parts = parts if self.part is None else {0: parts[self.part]}
        return {k: _class_of(p) for k, p in parts.items()} if self.classes else parts

    def _until(self, layer: str, model: Module, x: Any) -> Any:
        target, results = dict(model.modules())[layer], list[Any]()

        def look(name: str, module: Module, inputs: Any, result: Any) -> None:
            if module is target:
                results.append(result)
                raise _Reached

        try:
            with watched(model, look):
                call(model, x)
        except _Reached:
            return results[0]
        raise SettingsError(
            f"embed: expected a layer through which samples pass, found {layer!r}, which "
            f"{type(model).__name__} does not call"
            "; name a layer that forward calls"
        )


def _parts(result: Any) -> dict[Any, Array]:
    """Return the arrays of a result by their names, or by their numbers."""
    return as_arrays(result) if isinstance(result, Mapping) else dict(enumerate(arrays(result)))


def _one(results: dict[Any, Array]) -> Any:
    if any(isinstance(name, str) for name in results):
        return results
    return results[0] if len(results) == 1 else tuple(results.values())


def rows(x: Any) -> int:
    """Return the number of samples of inputs; raise a DataError if they differ."""
    lengths = [len(part) for part in parts_of(x)]
    if len(set(lengths)) != 1:
        raise DataError(
            f"predict: expected inputs with one common length of the first axis, found {lengths}"
            "; give one entry for each sample in every array, or call the model itself"
        )
    return lengths[0]


def prepared(x: Any, wide: bool = False) -> Any:
    """Return inputs in the form of models: an array, or a tuple or dict of several.

    Floats become float32 unless the model is ``wide`` and takes float64.
    """
    if is_nested(x):
        return each(lambda part: prepared(part, wide), x)
    if isinstance(x, Ragged) and len({*x.lengths.tolist()}) > 1:
        raise DataError(
            f"predict: expected samples of one shape, found sequences of {x.lengths.min()} to "
            f"{x.lengths.max()} items; {PAD}"
        )
    x = np.asarray(unmasked("predict", x))
    if x.dtype.kind not in "fiub" or not x.ndim:
        raise DataError(
            f"predict: expected numbers (N, ...), found {x.dtype} of shape {x.shape}"
            "; encode words first, and give one row for each sample"
        )
    return x if wide else as_inputs(x)


def _tensors(model: Module) -> list[Tensor]:
    return [tensor for _, tensor in model.held()]


def copy_of(model: Module) -> Module:
    """Return a copy whose parameters, buffers and constants are the model's own."""
    shared = [*_tensors(model), *constants_of(model)]
    return copy.deepcopy(model, {id(tensor): tensor for tensor in shared})


def _class_of(scores: Array) -> Array:
    if scores.ndim < 2 or scores.shape[-1] < 2:
        raise ShapeError(
            f"predict_class: expected a score for each of two or more classes, found results of "
            f"shape {scores.shape}; compare predict's results with a threshold"
        )
    return scores.argmax(-1)
