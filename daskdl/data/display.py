"""Display: a SampleSet in a line, or as a notebook's table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from daskdl.data.lazy.from_tasks import FromTasks
from daskdl.data.lazy.transformations import itself
from daskdl.data.on_workers.tasks import client_of
from daskdl.data.recipe import Recipe

if TYPE_CHECKING:
    from daskdl.data.samples import SampleSet


def line(samples: SampleSet) -> str:
    """Return a SampleSet in a line; only one sample is loaded for it, once."""
    kinds = ", ".join(f"{name}: {kind}" for name, kind in fields(samples).items()) or "..."
    parts = f"{samples.partitions} partition{'s' * (samples.partitions != 1)}"
    if not samples.is_counted:
        return f"SampleSet({kinds}; samples not counted yet, in {parts})"
    nbytes = bytes_of(samples)
    more = [size(nbytes)] if nbytes else []
    more += filter(None, [places(samples.recipes)])
    return f"SampleSet({kinds}; {', '.join([f'{len(samples):,} samples in {parts}', *more])})"


def table(samples: SampleSet) -> str:
    """Return a SampleSet as HTML."""
    nbytes = bytes_of(samples) if samples.is_counted else 0
    rows = {
        "samples": f"{len(samples):,}" if samples.is_counted else "not counted yet",
        "partitions": _partitions(samples),
        "bytes": size(nbytes) if nbytes else "not known",
        "where": places(samples.known) or "read where they are used",
    }
    if samples.functions:
        rows["functions"] = ", ".join(
            getattr(f, "__qualname__", repr(f)) for f in samples.functions
        )
    rows |= fields(samples)
    body = "".join(
        f"<tr><th style='text-align:left'>{escape(k)}</th><td>{escape(v)}</td></tr>"
        for k, v in rows.items()
    )
    return f"<table><caption>SampleSet</caption>{body}</table>"


def fields(samples: SampleSet) -> dict[str, str]:
    """Return dtype and shape of each array, as in ``f32[28, 28, 1]``, if that is known."""
    lazy = not samples.is_counted or any(recipe.is_lazy for recipe in samples.known)
    if lazy and not samples.has_schema:
        return {}
    return {
        name: f"{_kind(dtype)}[{', '.join('*' if n < 0 else str(n) for n in shape)}]"
        for name, (shape, dtype) in samples.schema.items()
    }


def places(recipes: Sequence[Recipe]) -> str:
    """Return as text how many partitions each worker or this process holds; "" if none do."""
    if all(recipe.in_memory for recipe in recipes):
        return "in this process"
    keys = [future.key for recipe in recipes for future in recipe.futures]
    client = client_of(recipes) if keys else None
    if client is None:
        return ""
    where: dict[Any, Any] = client.sync(client.scheduler.who_has, keys=keys)
    counts = Counter(min(at) for at in where.values() if at)
    return ", ".join(f"{n} at {address}" for address, n in sorted(counts.items()))


def bytes_of(samples: SampleSet) -> int:
    """Return the bytes of persisted samples on workers, else those that the sources know."""
    done = (r for r in samples.known if isinstance(r, FromTasks) and r.futures)
    persisted = [recipe for recipe in done if recipe.transform is itself]
    if len(persisted) < samples.partitions:
        return samples.nbytes
    keys, client = {recipe.keys[0] for recipe in persisted}, client_of(persisted)
    assert client is not None
    sizes: dict[Any, int] = client.sync(client.scheduler.nbytes, keys=list(keys), summary=False)
    return sum(sizes.values()) if len(sizes) == len(keys) else samples.nbytes


def size(nbytes: float) -> str:
    """Return a number of bytes as in "7.8 MB"."""
    for unit in ("B", "kB", "MB", "GB"):
        if nbytes < 1000:
            return f"{nbytes:.3g} {unit}"
        nbytes /= 1000
    return f"{nbytes:.3g} TB"


def _kind(dtype: Any) -> str:
    return {"T": "str", "O": "object"}.get(dtype.kind, f"{dtype.kind}{8 * dtype.itemsize}")


def _partitions(samples: SampleSet) -> str:
    if not samples.is_counted:
        return str(samples.partitions)
    lengths = samples.lengths
    each = (
        f"{min(lengths):,}" if len(set(lengths)) == 1 else f"{min(lengths):,} to {max(lengths):,}"
    )
    return f"{samples.partitions} of {each} samples"
