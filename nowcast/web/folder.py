"""The served folder: its newest forecast, which is read again when a newer one replaces it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from daskdl.errors import DataError
from nowcast.web.case import Case, open_case


class Folder:
    """Gives the newest forecast of a folder, or one forecast file.

    Parameters
    ----------
    path : path
        A folder with ``latest.json`` or ``forecasts/``, as ``nowcast watch`` makes it, or a
        forecast, zarr or netCDF.
    observed : path, optional
        Rain store; by default ``rain.zarr`` in the folder, if there is one.
    areas : path, optional
        GeoJSON of areas with names; by default ``areas.geojson`` in the folder, if there is one.

    Attributes
    ----------
    case : Case or None
        The case shown; after a failure the previous one.
    problem : str
        Why there is no case, or no newer one; empty when all is well.
    """

    def __init__(self, path: Path, observed: Path | None = None, areas: Path | None = None) -> None:
        self.path = path
        self.observed = observed
        self.areas = areas
        self.case: Case | None = None
        self.problem = "the forecast is being read"
        self._token: str | None = None

    def refresh(self) -> bool:
        """Read the newest forecast unless it is the last read one; return whether it is new.

        Errors of damaged or missing files are not raised: `problem` describes them.
        """
        try:
            forecast, about = self._newest()
            # Scans that arrive while a forecast is shown change the store's zarr.json.
            store = self._file_for(self.observed, "rain.zarr")
            areas = self._file_for(self.areas, "areas.geojson")
            files = [forecast, store and store / "zarr.json", areas]
            stats = [file.stat() for file in files if file and file.exists()]
            token = f"{forecast} {[(s.st_ino, s.st_mtime_ns, s.st_size) for s in stats]} {about}"
            if token == self._token:
                self.problem = ""  # a damaged one after it is gone
                return False
            case = open_case(forecast, store, areas, token, about)
        except (DataError, OSError) as error:
            self.problem = self._without_place(error)
            return False
        self.case, self.problem, self._token = case, "", token
        return True

    def status(self) -> dict[str, Any]:
        """Return the contents of ``status.json``; nothing if there is none."""
        try:
            status = json.loads((self.path / "status.json").read_text())
        except (OSError, ValueError):
            return {}
        return status if isinstance(status, dict) else {}

    def shown(self) -> Case:
        """Return the case to show, with the folder's problem among its notes.

        Raises DataError if there is nothing to show.
        """
        case = self.case
        if case is None:
            raise DataError(self.problem)
        if self.problem:
            return replace(case, notes=(*case.notes, f"An older forecast: {self.problem}"))
        return case

    def _newest(self) -> tuple[Path, dict[str, Any]]:
        """Return the newest forecast and its entry in ``latest.json``."""
        if self.path.is_file() or (self.path / "zarr.json").exists():
            return self.path, {}
        if not self.path.is_dir():
            raise DataError(f"{self.path}: expected a folder or a forecast, found nothing there")
        try:
            about = json.loads((self.path / "latest.json").read_text())
            forecast = self.path / about["forecast"]
        except FileNotFoundError:
            made = sorted((self.path / "forecasts").glob("[!.]*.nc"))
            if not made:
                raise DataError(
                    f"{self.path}: expected latest.json or forecasts/*.nc, found neither; "
                    "nowcast watch makes them"
                ) from None
            return made[-1], {}  # names are times
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"{self.path / 'latest.json'}: expected JSON with the name of a forecast, found "
                f"something else ({type(error).__name__}: {error})"
            ) from error
        if not forecast.resolve().is_relative_to(self.path.resolve()):
            raise DataError(f"{self.path / 'latest.json'}: names a forecast outside of its folder")
        return forecast, {k: about[k] for k in ("issued", "method", "flags") if k in about}

    def _file_for(self, chosen: Path | None, name: str) -> Path | None:
        """Return the chosen path, else the path of this name in the folder, if it exists."""
        if chosen is None and (self.path / name).exists():
            return self.path / name
        return chosen

    def _without_place(self, error: Exception) -> str:
        """Return an error's text without the folder's path, which strangers should not see."""
        return str(error).replace(f"{self.path}/", "").replace(str(self.path), self.path.name)
