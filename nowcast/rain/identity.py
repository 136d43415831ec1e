"""Identity of a rain store: its name, and whether it was replaced or is damaged."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import LocalStore

from daskdl.errors import DataError

#: Place of the checksum in a group's metadata; zarr passes over what it does not know there.
CHECKSUM = "sha256"
CONSOLIDATED = {"kind", "must_understand", "metadata", CHECKSUM}


class OneStore(LocalStore):
    """A store that refuses reads after another one has replaced it.

    A store is replaced by renaming another one over it. So each read is followed by a check that it
    is still the same store: by its metadata's time and, if that differs, by the attribute ``id``.
    """

    _id: str | None = None
    _seen: tuple[int, int, int] | None = None

    async def get(
        self,
        key: str,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """Read a file of the store; None if there is none."""
        content = await super().get(key, prototype, byte_range)
        self._check()
        return content

    def get_sync(
        self,
        key: str,
        *,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """Read a file of the store; None if there is none."""
        content = super().get_sync(key, prototype=prototype, byte_range=byte_range)
        self._check()
        return content

    def _check(self) -> None:
        path = self.root / "zarr.json"
        try:
            status = os.stat(path)
            seen = status.st_ino, status.st_size, status.st_mtime_ns
            if seen == self._seen:
                return
            identity = id_of(path)
        except FileNotFoundError:
            if self._id is None:
                return  # there never was a store: zarr raises the error
            identity = "none"
        if self._id not in (None, identity):
            raise DataError(
                f"{self.root}: expected the store that was opened, of id {self._id!r}, found one "
                f"of id {identity!r} in its place; open it again"
            )
        self._id, self._seen = identity, seen

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_seen": None}  # inode numbers differ between machines


def id_of(path: Path) -> str:
    """Return the attribute ``id`` in a store's ``zarr.json``; "" without one.

    Raises DataError if the file is damaged.
    """
    try:
        group = json.loads(path.read_bytes())
        consolidated = group.get("consolidated_metadata", {})
        expected = consolidated.get(CHECKSUM)
    except (ValueError, AttributeError) as error:
        raise DataError(
            f"{path}: expected the metadata of a zarr store, found something else ({error}); "
            "ingest into a new store"
        ) from error
    identity = str(group.get("attributes", {}).get("id", ""))
    # A copy by another program has no checksum; a damaged name leaves another key in its place.
    keys = consolidated.keys()
    renamed = identity and not keys <= CONSOLIDATED <= keys | {CHECKSUM}
    if renamed or expected not in (None, checksum(group)):
        raise DataError(
            f"{path}: expected the metadata as they were written, with SHA-256 {expected}, found "
            f"{checksum(group)}; the file is damaged: ingest into a new store"
        )
    return identity


def checksum(group: dict[str, Any]) -> str:
    """Return the SHA-256 of a group's metadata without the checksum itself."""
    consolidated = dict(group.get("consolidated_metadata", {}))
    consolidated.pop(CHECKSUM, None)
    whole = group | {"consolidated_metadata": consolidated}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def path_of(dataset: xr.Dataset) -> str:
    """Return the path of a rain store for messages; "rain store" if it is in memory."""
    return str(dataset.encoding.get("source", "rain store"))


def is_simulated(data: xr.Dataset | xr.DataArray) -> bool:
    """Return whether a Dataset calls itself simulated.

    An attribute ``simulated`` decides. Without one the source, the title or the station must say
    so, as in the scans of :func:`nowcast.simulate.simulate`.
    """
    flag = str(data.attrs.get("simulated", "")).strip().lower()
    if flag:
        return flag not in {"0", "false", "no", "none"}
    text = " ".join(str(data.attrs.get(name, "")) for name in ("source", "title", "station"))
    return "simulated" in text.lower()


def name_of(store: xr.Dataset) -> str:
    """Return the title of a rain store with a digest of its grid, first time and first frame.

    A model remembers the names of its training stores. Titles alone are often equal, for instance
    for all months of one radar. A store that grows keeps its name, and so does one that was
    ingested again from the same files.
    """
    digest = hashlib.sha256()
    if "crs" in store.variables:
        digest.update(str(store["crs"].attrs.get("crs_wkt", "")).encode())
    for axis in ("y", "x"):
        digest.update(np.round(store[axis].values).astype(np.int64).tobytes())
    first = store["rain_rate"].isel(time=slice(0, 1))
    digest.update(first["time"].values.astype("datetime64[s]").astype(np.int64).tobytes())
    digest.update(np.nan_to_num(first.values.astype(np.float32), nan=-1).tobytes())
    return f"{store.attrs.get('title', path_of(store))} [{digest.hexdigest()[:8]}]"
