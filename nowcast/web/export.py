"""The page as files, for any web server: the server's answers in a folder."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError
from daskdl.files import remove, replacing
from nowcast.web import answers
from nowcast.web.basemap import basemap_of, cells

if TYPE_CHECKING:
    from nowcast.web.case import Case

PAGE = Path(__file__).parent / "page"
#: Cells along the sides of the squares of numbers for clicks.
SIDE = 64
#: Numbers are 16 bits: rain rates in hundredths of mm h-1, probabilities in ten-thousandths.
RAIN, PROBABILITY, MISSING = 100, 10_000, 65_535


def export(case: Case, site: Path, progress: Callable[[int, int], None] | None = None) -> int:
    """Write the page of a case; a page that is open meanwhile continues with the previous case.

    Each case has its own folder, ``case/NAME``; ``frames``, written last, names the newest one. The
    previous case stays for open pages; older ones are removed.

    - returns: size of the site in bytes.
    - raises SettingsError if the folder has another page.
    """
    if (site / "index.html").exists() and not (site / "frames").exists():
        raise SettingsError(
            f"--export: expected a new folder or one of an earlier export, found {site} with an "
            "index.html of something else; choose another folder"
        )
    folder = site / "case" / case.name
    before = _base_before(site)
    if not folder.exists():
        contents = list(_contents(case))
        with replacing(folder) as temporary:
            for done, (name, content) in enumerate(contents, 1):
                path = temporary / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content() if callable(content) else answers.text(content))
                if progress is not None:
                    progress(done, len(contents))
    for file in sorted(PAGE.iterdir()):
        if file.name not in ("openapi.json", "api.html", "api.js"):  # no server answers these
            _put(site / file.name, file.read_bytes())
    _put(site / "v1" / "latest", answers.text(answers.latest(case, {})))
    _put(site / "v1" / "area", answers.text(answers.areas(case)))
    layout = {"side": SIDE, "rain": RAIN, "probability": PROBABILITY, "missing": MISSING}
    shown = answers.frames(case) | {"base": f"case/{case.name}/", "squares": layout}
    _put(site / "frames", answers.text(shown))
    for old in (site / "case").iterdir():
        if old.name not in (case.name, before):
            remove(old)
    return sum(file.stat().st_size for file in site.rglob("*") if file.is_file())


def _contents(case: Case) -> Iterator[tuple[str, Any]]:
    """Yield names and contents of a case's files, or functions that return the contents."""
    yield "map", basemap_of(case)
    yield "cells", cells(case)
    for n, name in enumerate(case.areas.names if case.areas else ()):
        yield f"v1/area/{n}", answers.area(case, name)
    # A point without numbers, which the page fills in.
    yield "v1/point", answers.series(case, lambda fields: [None] * len(fields), case.quantiles)
    for frame in answers.frames(case)["quantities"]:
        for n in range(frame["first"], len(case.shown)):
            name = frame["name"]
            yield f"frame/{name}/{n}.png", lambda name=name, n=n: case.picture(name, n)
    for row in range(0, case.grid.ny, SIDE):
        for column in range(0, case.grid.nx, SIDE):
            yield (
                f"square/{row // SIDE}-{column // SIDE}",
                lambda row=row, column=column: _square(case, row, column),
            )


def _square(case: Case, row: int, column: int) -> bytes:
    """Return all numbers of a square, (field, y, x) little-endian uint16, deflated.

    The fields are in the order of a point's: observed, forecast, quantiles, probabilities.
    """
    part = np.s_[..., row : row + SIDE, column : column + SIDE]
    rain = [case.observed, case.rain, *([] if case.quantiles is None else case.quantiles)]
    coded = [_coded(fields[part], RAIN) for fields in rain]
    coded += [_coded(fields[part], PROBABILITY) for fields in case.probability]
    return zlib.compress(np.concatenate(coded).tobytes(), 6)


def _coded(fields: NDArray[np.float16], scale: int) -> NDArray[np.uint16]:
    """Return numbers as integers; `MISSING` where they are NaN."""
    with np.errstate(invalid="ignore"):
        whole = np.round(fields.astype(np.float32) * scale)
    return np.where(np.isnan(whole), MISSING, np.clip(whole, 0, MISSING - 1)).astype("<u2")


def _put(path: Path, content: bytes) -> None:
    """Write a file in one step."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def _base_before(site: Path) -> str:
    """Return the name of the case that the site shows now; empty if there is none."""
    try:
        return os.path.basename(json.loads((site / "frames").read_bytes())["base"].rstrip("/"))
    except (OSError, ValueError, KeyError, TypeError):
        return ""
