"""Panels of a picture of forecasts: fields by row, their times, and whether they are simulated."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from daskdl.errors import DataError, SettingsError
from nowcast.plot.figure import named_simulated
from nowcast.plot.place import Place
from nowcast.rain.identity import is_simulated

OBSERVED = "observed"
#: Name of the row of a forecast without a name.
UNNAMED = "forecast"
#: Rain rate in mm h-1 whose probability is shown by default.
THRESHOLD = 1.0


@dataclass(frozen=True)
class Panels:
    """Rows of fields with common lead times."""

    #: Name of a row -> (lead_time, y, x) in mm h-1, or a probability; the observed rain comes
    #: first.
    rows: dict[str, NDArray[np.float32]]
    minutes: NDArray[np.float64]  #: Lead times.
    reference: datetime | None  #: Start of the forecasts, UTC.
    #: Metres.
    x: NDArray[Any]
    y: NDArray[Any]
    simulated: bool  #: Whether the data are simulated.
    before: NDArray[np.float32]  #: Input frames of the forecasts; n may be 0.
    minutes_before: NDArray[np.float64]  #: Times of ``before`` relative to the start, 0 or less.
    #: The rows that are probabilities, with their thresholds in mm h-1.
    probabilities: dict[str, float] = field(default_factory=dict)
    place: Place = field(default_factory=Place)  #: The radar's, or latitudes and longitudes.
    station: str = ""  #: Name of the radar or composite, where it is known.

    @classmethod
    def of(
        cls,
        forecast: xr.Dataset | xr.DataArray | Mapping[str, xr.Dataset | xr.DataArray],
        observed: xr.DataArray | None = None,
        before: xr.DataArray | None = None,
        thresholds: Sequence[float] | None = None,
        members: int = 0,
    ) -> Panels:
        """Return panels of forecasts and the observed rain, cropped to the area with data.

        - ``forecast`` (lead_time, y, x): as :func:`nowcast.forecasters.predict.predict` gives it,
          or several by their names.
        - ``observed`` (time, y, x): rain on the same grid. It is missing at times of the forecast
          that it does not have.
        - ``before`` (time, y, x): input frames of the forecast; without times, the last ones at its
          step.
        - ``thresholds``: rain rates in mm h-1 whose probability is shown too; by default 1, if
          forecasts have it.
        - ``members``: number of members to show too, if forecasts have them.
        - raises DataError if there is no forecast, or one has another grid or other lead times than
          the first.
        - raises SettingsError if no forecast has the probability of a threshold.
        """
        if isinstance(forecast, xr.Dataset | xr.DataArray):  # a Dataset is a mapping too
            forecast = {UNNAMED: forecast}
        forecasts = {
            name: field["rain_rate"] if isinstance(field, xr.Dataset) else field
            for name, field in forecast.items()
        }
        if not forecasts:
            raise DataError("pictures: expected a forecast at least, found none")
        first = next(iter(forecasts.values()))
        fields = {} if observed is None else {OBSERVED: _at_times_of(first, observed)}
        probabilities: dict[str, float] = {}
        for name, dataset in forecast.items():
            fields[name] = forecasts[name]
            if isinstance(dataset, xr.Dataset):
                extra, of_extra = _extra_rows(name, dataset, thresholds, members)
                fields |= extra
                probabilities |= of_extra
        _check_probabilities(thresholds, probabilities)
        for name, values in fields.items():
            if values.dims != ("lead_time", "y", "x") or values.shape != first.shape:
                raise DataError(
                    f"pictures: expected {name} (lead_time, y, x) of shape {first.shape}, found "
                    f"{tuple(map(str, values.dims))} of shape {values.shape}"
                )
        rows = {name: np.asarray(values, np.float32) for name, values in fields.items()}
        minutes = first["lead_time"].values / np.timedelta64(60, "s")
        start = first.coords.get("forecast_reference_time")
        frames, minutes_before = _before(first, minutes, before)
        there = np.isfinite(np.concatenate([frames, *rows.values()])).any(axis=0)
        down, across = _extent(there.any(axis=1)), _extent(there.any(axis=0))
        return cls(
            rows={name: row[:, down, across] for name, row in rows.items()},
            minutes=minutes,
            reference=None if start is None else start.values.astype("datetime64[us]").item(),
            x=first["x"].values[across],
            y=first["y"].values[down],
            simulated=any(map(is_simulated, [*forecast.values(), *fields.values()])),
            before=frames[:, down, across],
            minutes_before=minutes_before,
            probabilities=probabilities,
            place=Place.of(next(iter(forecast.values()))).cropped(down, across),
            station=str(next(iter(forecast.values())).attrs.get("station", "")),
        )

    def zoomed(self, kilometres: float) -> Panels:
        """Return the square of this side in km with the most rain; a smaller grid stays whole.

        Raises SettingsError unless the side is above 0.
        """
        if not kilometres > 0:
            raise SettingsError(f"--zoom: expected the side of a square in km, found {kilometres}")
        rain = sum(
            np.nan_to_num(row).sum(axis=0, dtype=np.float64)
            for name, row in self.rows.items()
            if name not in self.probabilities
        )
        assert isinstance(rain, np.ndarray)
        cells = []
        for middles in (self.y, self.x):
            low, high = edges(middles)
            part = min(1.0, kilometres / (high - low))
            cells.append(max(2, round(part * len(middles))))
        down, across = _rainiest(rain, cells[0], cells[1])
        return replace(
            self,
            rows={name: row[:, down, across] for name, row in self.rows.items()},
            x=self.x[across],
            y=self.y[down],
            before=self.before[:, down, across],
            place=self.place.cropped(down, across),
        )

    def input_of(self, name: str, index: int) -> NDArray[np.float32]:
        """Return a frame before the forecast as a row shows it: a row of probability has 0 or 1."""
        frame = self.before[index]
        if name not in self.probabilities:
            return frame
        event = (frame >= self.probabilities[name]).astype(np.float32)
        return np.where(np.isnan(frame), np.float32(np.nan), event)

    @property
    def title(self) -> str:
        """Return the place, method and start of the forecast, and whether it is simulated."""
        methods = [name for name in self.rows if name != OBSERVED and "\n" not in name]
        by = f" by {methods[0]}" if len(methods) == 1 and methods[0] != UNNAMED else ""
        start = "" if self.reference is None else f" from {self.reference:%Y-%m-%d %H:%M} UTC"
        title = f"Rain forecast{by}{start}"
        where = re.split(r", (?=[A-Z]+:)", self.station)[0]  # without codes, ", WMO:06477"
        title = f"{where}: {title[0].lower()}{title[1:]}" if where else title
        return named_simulated(title, self.simulated, lower=not where)

    @property
    def aspect(self) -> float:
        """Height of the map over its width."""
        (y0, y1), (x0, x1) = edges(self.y), edges(self.x)
        return float(np.clip((y1 - y0) / (x1 - x0), 0.2, 5.0))

    def time(self, index: int) -> np.datetime64:
        """Return the time of a lead, or of the last frame, -1; NaT when it is not known."""
        if self.reference is None:
            return np.datetime64("NaT", "s")
        minutes = self.minutes_before[-1] if index < 0 else self.minutes[index]
        return np.datetime64(self.reference, "s") + np.timedelta64(round(60 * minutes), "s")

    def when(self, minutes: float) -> str:
        """Return the time of a lead, such as ``21:40 UTC``; nothing when the start is not known."""
        if self.reference is None:
            return ""
        return f"{self.reference + timedelta(minutes=float(minutes)):%H:%M} UTC"


def edges(middles: NDArray[Any]) -> tuple[float, float]:
    """Return the outer edges, in kilometres, of equal cells around middles in metres."""
    half = 0.5 * float(middles[-1] - middles[0]) / max(len(middles) - 1, 1) or 500.0
    return (float(middles[0]) - half) / 1e3, (float(middles[-1]) + half) / 1e3


def _extra_rows(
    name: str, forecast: xr.Dataset, thresholds: Sequence[float] | None, members: int
) -> tuple[dict[str, xr.DataArray], dict[str, float]]:
    """Return a forecast's rows besides its rain, and the thresholds of rows of probability."""
    rows: dict[str, xr.DataArray] = {}
    probabilities: dict[str, float] = {}
    for threshold in (THRESHOLD,) if thresholds is None else thresholds:
        field = _probability(forecast, threshold, asked=thresholds is not None)
        if field is not None:
            row = f"{name}\n{threshold:g} mm/h or more"
            rows[row], probabilities[row] = field, threshold
    if "rain_rate_members" in forecast:
        fields = forecast["rain_rate_members"].drop_vars("realization", errors="ignore")
        for k in range(min(members, fields.sizes["realization"])):
            rows[f"{name}\nmember {k + 1}"] = fields.isel(realization=k)
    return rows, probabilities


def _probability(forecast: xr.Dataset, threshold: float, *, asked: bool) -> xr.DataArray | None:
    """Return the probability of a threshold, else the fraction of members; None without either."""
    if "exceedance_probability" in forecast:
        known = forecast["threshold"].values
        matches = abs(known - threshold) < 1e-6 * max(1.0, threshold)
        if matches.any():
            row = forecast["exceedance_probability"].isel(threshold=int(matches.argmax()))
            return row.drop_vars("threshold")
        if asked:
            raise SettingsError(
                f"--threshold: expected one of the forecast's, "
                f"{', '.join(f'{value:g}' for value in known)} mm/h, found {threshold:g}"
            )
    if "rain_rate_members" in forecast:
        fields = forecast["rain_rate_members"]
        reached = (fields >= threshold).where(fields.notnull()).mean("realization")
        return reached.astype("float32")
    return None


def _at_times_of(forecast: xr.DataArray, observed: xr.DataArray) -> xr.DataArray:
    """Return the rain observed at a forecast's leads, NaN at those without observation."""
    if "lead_time" in observed.dims:
        return observed.reindex(lead_time=forecast["lead_time"])
    if "time" in observed.dims and "time" in observed.coords and "time" in forecast.coords:
        observed = observed.reindex(time=forecast["time"].values)
    return observed.rename({observed.dims[0]: "lead_time"}).drop_vars("time", errors="ignore")


def _before(
    forecast: xr.DataArray, minutes: NDArray[np.float64], before: xr.DataArray | None
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return the frames before a forecast and their times in minutes, 0 or less."""
    if before is None:
        return np.empty((0, *forecast.shape[1:]), np.float32), np.empty(0)
    if before.ndim != 3 or before.shape[1:] != forecast.shape[1:]:
        raise DataError(
            f"pictures: expected frames before the forecast (time, y, x) of shape "
            f"{forecast.shape[1:]}, found {tuple(map(str, before.dims))} of shape {before.shape}"
        )
    if "time" in before.coords and "forecast_reference_time" in forecast.coords:
        since = before["time"].values - forecast["forecast_reference_time"].values
        times = since / np.timedelta64(60, "s")
    else:
        times = minutes[0] * np.arange(1 - len(before), 1)
    return np.asarray(before.values, np.float32), times


def _check_probabilities(
    thresholds: Sequence[float] | None, probabilities: Mapping[str, float]
) -> None:
    """Raise a SettingsError if no forecast has the probability of a requested threshold."""
    for threshold in thresholds or ():
        if threshold not in probabilities.values():
            raise SettingsError(
                f"--threshold: expected forecasts with probabilities or members, found none for "
                f"{threshold:g} mm/h; make them by a method that gives them, such as sprog"
            )


def _rainiest(rain: NDArray[np.float64], high: int, wide: int) -> tuple[slice, slice]:
    """Return the first window of ``high`` rows, ``wide`` columns with the largest sum of (y, x)."""
    total = np.pad(rain, ((1, 0), (1, 0))).cumsum(axis=0).cumsum(axis=1)
    sums = total[high:, wide:] - total[:-high, wide:] - total[high:, :-wide] + total[:-high, :-wide]
    row, column = (int(at) for at in np.unravel_index(np.argmax(sums), sums.shape))
    return slice(row, row + high), slice(column, column + wide)


def _extent(there: NDArray[np.bool_]) -> slice:
    """Return the slice from the first to the last true value; all if there are too few."""
    places = np.flatnonzero(there)
    return slice(places[0], places[-1] + 1) if places.size > 1 else slice(None)
