"""Store: a scene's result written to a zarr array tile by tile, which a later call can resume."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np

from daskdl.errors import SettingsError
from daskdl.predict.scenes.running import run_tiles
from daskdl.predict.scenes.tasks import Target
from daskdl.predict.scenes.tiles import Place, Tiling

#: Attribute of an array that identifies its model and tiles.
TOKEN = "daskdl_prediction"
#: Attribute with a digest of the cells of each tile; "" if the tile was blended.
DIGESTS = "daskdl_cells"
#: Seconds between two updates of the digests.
EVERY = 10.0


def stored(tiling: Tiling, out: str, token: str, dims: list[str] | None, client: Any) -> Any:
    """Write the tiles of a result that a zarr array does not have yet, and return the array.

    A chunk of the array is a tile, written whole by the task that computes it. The cells of
    existing chunks are read again; a chunk is computed anew if they have changed.

    ``out`` is a path or a URL; it is created if it does not exist. Raises SettingsError if it is a
    result with another ``token``, which stands for the model, the tiles and the scene's shape.
    """
    array = _array(tiling, out, token, dims)
    digests, there = dict(array.attrs.get(DIGESTS, {})), _done(array)
    ends = [np.cumsum((0, *sizes)).tolist() for sizes in tiling.chunks]
    targets: dict[Place, Target] = {}
    for place in itertools.product(*(range(len(sizes)) for sizes in tiling.chunks)):
        digest = digests.get(_name(place)) if place in there else None
        if digest != "":
            region = tuple(slice(e[i], e[i + 1]) for e, i in zip(ends, place, strict=True))
            targets[place] = Target(array, region, digest)
    noted = time.monotonic()

    def tell(place: Place, digest: str) -> None:
        nonlocal noted
        digests[_name(place)] = digest
        if time.monotonic() - noted > EVERY:
            array.attrs[DIGESTS], noted = digests, time.monotonic()

    try:
        run_tiles(tiling, targets, client, tell)
    finally:
        array.attrs[DIGESTS] = digests
    return array


def _name(place: Place) -> str:
    return "/".join(map(str, place))


def _array(tiling: Tiling, out: str, token: str, dims: list[str] | None) -> Any:
    import zarr

    obstacle = "another array"
    try:
        array = zarr.open_array(out, mode="r+", config={"write_empty_chunks": True})
        if array.attrs.get(TOKEN) == token:
            return array
    except FileNotFoundError:
        try:
            return zarr.create_array(
                out, shape=tuple(map(sum, tiling.chunks)), dtype=tiling.common.like.dtype,
                chunks=tuple(map(max, tiling.chunks)), dimension_names=dims,
                attributes={TOKEN: token}, config={"write_empty_chunks": True},
            )  # fmt: skip
        except OSError as error:
            obstacle = str(error)
    except (OSError, ValueError) as error:  # a file, or a group
        obstacle = str(error)
    raise SettingsError(
        f"predict, out: expected a path or URL with nothing at {out}, or the result of this model "
        f"with these tiles to go on with, found {obstacle}; remove it or take another name"
    )


def _done(array: Any) -> set[Place]:
    """Return the chunks that an array has, by their places."""
    from zarr.core.sync import sync

    async def keys() -> list[str]:
        return [key async for key in array.store_path.store.list_prefix(array.path)]

    lead = f"{array.path}/c/".lstrip("/")
    places = [key.removeprefix(lead) for key in sync(keys()) if key.startswith(lead)]
    # A name with more than numbers belongs to a file that was not written completely.
    parts = [place.split("/") for place in places]
    return {tuple(map(int, part)) for part in parts if all(p.isdigit() for p in part)}
