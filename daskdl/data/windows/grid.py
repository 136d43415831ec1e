"""Grid of windows: their places along the axes of arrays, and the windows of a partition."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from daskdl.data.nested import flat
from daskdl.data.sources.zarr import PARTITION_BYTES, check_plain, version_of_array
from daskdl.data.windows.windows import Axis, Windowed, Windows, recipe_of
from daskdl.errors import DataError, SettingsError


def windows_of(
    data: Any, window: Mapping[Hashable, int | None], step: Any, fields: Mapping[str, str]
) -> tuple[Windowed, list[Windows]]:
    """Return the arrays, and recipes of their windows; see ``from_windows``."""
    windowed = _windowed(data, window, step, fields)
    starts = [np.arange(0, a.length - a.size + 1, a.step) for a in windowed.axes]
    together = [len(some) for some in starts]
    box = np.array([[some[0] for some in starts]] * 2)
    while max(together) > 1:
        box[1] = [a.step * (n - 1) for a, n in zip(windowed.axes, together, strict=True)]
        if windowed.nbytes(box) <= PARTITION_BYTES:
            break
        longest = together.index(max(together))
        together[longest] = -(-together[longest] // 2)
    pieces = [
        [some[i : i + n] for i in range(0, len(some), n)]
        for some, n in zip(starts, together, strict=True)
    ]
    return windowed, [
        recipe_of(
            windowed, np.stack(np.meshgrid(*some, indexing="ij"), -1).reshape(-1, len(starts))
        )
        for some in itertools.product(*pieces)
    ]


def _windowed(
    data: Any, window: Mapping[Hashable, int | None], step: Any, fields: Mapping[str, str]
) -> Windowed:
    where = "SampleSet.from_windows"
    arrays: dict[str, Any]
    if hasattr(data, "data_vars"):
        missing = sorted(set(fields.values()) - set(map(str, data.data_vars)))
        if missing or not data.data_vars:
            raise DataError(
                f"{where}: expected variables of the Dataset, which are {[*data.data_vars]}, found "
                f"{missing or 'none'}"
            )
        # An axis called x or y leaves no such name to a variable.
        arrays = {n: data[v] for n, v in (fields or {str(v): v for v in data.data_vars}).items()}
    else:
        if fields:
            raise SettingsError(
                f"{where}: expected names of variables with a Dataset only, found {fields} with "
                f"{type(data).__name__}; give arrays as {{'x': ..., 'y': ...}}"
            )
        arrays = flat(data if isinstance(data, Mapping) else {"x": data})
    for name, array in arrays.items():
        if not hasattr(array, "dtype") or any(n != n for n in array.shape):  # NaN: not known
            raise DataError(
                f"{where}, {name}: expected an array of known shape, found "
                f"{type(array).__name__} of shape {getattr(array, 'shape', None)}"
            )
    if not isinstance(window, Mapping) or not window:
        raise SettingsError(
            f"{where}, window: expected cells by axis, such as {{'y': 256, 'x': 256}}, or "
            f"{{0: 256, 1: 256}} of arrays without names, found {window!r}"
        )
    names = {n: [*getattr(a, "dims", range(len(a.shape)))] for n, a in arrays.items()}
    first = next((n for n, dims in names.items() if set(window) <= set(dims)), None)
    if first is None:
        raise SettingsError(
            f"{where}, window: expected axes of the arrays, which have {names}, found "
            f"{[*window]}; name axes that one of them has"
        )
    steps = step if isinstance(step, Mapping) else dict.fromkeys(window, step)
    axes = []
    for name in (dim for dim in names[first] if dim in window):
        length, size = arrays[first].shape[names[first].index(name)], window[name]
        every = steps.get(name)
        every = (size or 1) if every is None or size is None else every
        for name_of_number, n in (("window", 1 if size is None else size), ("step", every)):
            if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
                raise SettingsError(
                    f"{where}, {name_of_number}: expected whole cells along {name!r}, found {n!r}"
                )
        if length < (size or 1):
            raise DataError(
                f"{where}: expected at least {size or 1} cells along {name!r} for one window, "
                f"found {length}; take a smaller window"
            )
        axes.append(Axis(name, length, int(size or 1), int(every), size is not None))
    scales = {
        n: [_scale(where, n, d, length, axes) for d, length in zip(names[n], a.shape, strict=True)]
        for n, a in arrays.items()
    }
    for name, one in arrays.items():
        check_plain(f"{where}, {name}", one)
    cells = {n: unnamed(a) for n, a in arrays.items()}
    cells = {first: cells.pop(first), **cells}
    versions = filter(None, map(version_of_array, cells.values()))
    return Windowed(cells, tuple(axes), {n: scales[n] for n in cells}, "\n".join(versions))


def check_alike(scenes: Sequence[Windowed]) -> None:
    """Raise a DataError unless there are scenes, and their windows have the same arrays."""
    schemas = [scene.schema for scene in scenes]
    other = next((schema for schema in schemas if schema != schemas[0]), None)
    if not schemas or other is not None:
        raise DataError(
            "SampleSet.from_windows: expected scenes whose windows have the same arrays, "
            f"{schemas[0] if schemas else 'at least one scene'}, found {other}"
        )


def _scale(
    where: str, name: str, dim: Hashable, length: int, axes: list[Axis]
) -> tuple[int, Fraction] | None:
    i = next((i for i, axis in enumerate(axes) if axis.name == dim), None)
    if i is None:
        return None
    of = Fraction(length, axes[i].length)
    if (axes[i].size * of).denominator > 1 or (axes[i].step * of).denominator > 1:
        raise DataError(
            f"{where}, {name}: expected whole cells for each window of {axes[i].size} every "
            f"{axes[i].step} of {axes[i].length} along {dim!r}, found {length} cells along it"
            "; take a window and a step that are multiples of the arrays' ratio"
        )
    return i, of


def unnamed(array: Any) -> Any:
    """Return an array without names: xarray's own if it is read when it is sliced."""
    variable = getattr(array, "variable", None)
    if variable is None:
        return array
    lazy = variable.chunks is None and not variable._in_memory
    return variable if lazy else variable.data
