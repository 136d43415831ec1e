"""Bare pictures of rain, one pixel per cell, no margins: for the page, and with world files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from daskdl.files import replacing
from nowcast.plot.figure import COLOURS, EXTREME, LEVELS, MISSING, PROBABILITIES, PROBABILITY_LEVELS
from nowcast.rain.grid import Grid
from nowcast.rain.texts import utc_text

if TYPE_CHECKING:
    import xarray as xr
    from PIL.Image import Image

#: Edges, colours from each edge on, and unit of the two scales.
SCALES: dict[str, tuple[tuple[float, ...], tuple[str, ...], str]] = {
    "rain": (LEVELS, (*COLOURS, EXTREME), "mm/h"),
    "probability": (PROBABILITY_LEVELS[:-1], PROBABILITIES, "%"),
}
#: Duration of an image of an animation in milliseconds.
FRAME = 450


def indexed(field: NDArray[np.floating], scale: str) -> Image:
    """Return a field (y, x) as an indexed image, north up: 0 is dry, the last colour missing."""
    from PIL import Image

    edges, colours, _ = SCALES[scale]
    # Half precision may round a rate on an edge to just below it.
    index = np.digitize(field * np.float32(1.0005), edges).astype(np.uint8)
    index[np.isnan(field)] = len(colours) + 1
    image = Image.fromarray(np.ascontiguousarray(index[::-1]))
    image.putpalette(bytes.fromhex("".join(c[1:] for c in ("#ffffff", *colours, MISSING))))
    return image


def write_pictures(forecast: xr.Dataset, path: Path) -> None:
    """Write the rain rate as a GIF of all lead times, and a PNG of each; dry is transparent.

    Each picture gets a world file (``.gfw``, ``.pgw``), and an ``.aux.xml`` with projection, unit
    and time, which GDAL and QGIS use to place it.

    - ``forecast``: see `nowcast.forecasters.dataset.forecast_dataset`.
    - ``path``: path of the GIF, which is written last; the PNG of +10 min is ``<stem>_010min.png``.
    """
    grid = Grid.from_dataset(forecast, where=str(path))
    north = grid.y0 + (grid.ny - 1) * grid.dy  # of the middle of the first row
    place = "".join(f"{number!r}\n" for number in (grid.dx, 0.0, 0.0, -grid.dy, grid.x0, north))
    start = forecast["forecast_reference_time"].values
    shared = {"forecast_reference_time": f"{utc_text(start)}Z", "units": "mm h-1"}
    shared["source"] = str(forecast.attrs.get("source", ""))

    def put(file: Path, image: Image, described: dict[str, str], **options: Any) -> None:
        root = ElementTree.Element("PAMDataset")
        ElementTree.SubElement(root, "SRS").text = grid.projection.to_wkt()
        metadata = ElementTree.SubElement(root, "Metadata")
        for name, text in (shared | described).items():
            ElementTree.SubElement(metadata, "MDI", key=name).text = text
        world = file.with_suffix(f"{file.suffix[:2]}{file.suffix[-1]}w")
        _put(file.with_name(f"{file.name}.aux.xml"), ElementTree.ElementTree(root).write)
        _put(world, lambda temporary: temporary.write_text(place))
        _put(file, lambda temporary: image.save(temporary, file.suffix[1:], **options))

    images: list[Image] = []
    for field, time in zip(forecast["rain_rate"].values, forecast["time"].values, strict=True):
        images.append(indexed(field, "rain"))
        minutes = (time - start) / np.timedelta64(60, "s")
        file = path.with_name(f"{path.stem}_{minutes:03g}min.png")
        put(file, images[-1], {"valid_time": f"{utc_text(time)}Z"}, transparency=0, bits=4)
    put(
        path, images[0], {}, save_all=True, append_images=images[1:], duration=FRAME, loop=0,
        transparency=0, disposal=2,
    )  # fmt: skip


def _put(path: Path, write: Callable[[Path], object]) -> None:
    with replacing(path) as temporary:
        write(temporary)
