"""Rolling verification: forecasts of a watch against observations, with reference methods.

Sums of six hours each are kept, which add up. A forecast counts once, even after a kill.
"""

from __future__ import annotations

import json
import logging
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from daskdl.errors import DaskdlError, DataError
from daskdl.files import replacing
from nowcast.forecasters import forecaster
from nowcast.forecasters.dataset import forecast_of
from nowcast.forecasters.file import open_forecast
from nowcast.forecasters.predict import latest_of, predict
from nowcast.live.recalibration import NAME, Recalibration, Verdict, before, fit, judge
from nowcast.rain.grid import mean_spacing
from nowcast.rain.texts import utc_text
from nowcast.verification.case import CaseSums, Totals, score_case
from nowcast.verification.findings import findings, lead_texts
from nowcast.verification.pool import RELIABILITY_BINS, add_totals, pool
from nowcast.verification.probability import BINS, probability_sums
from nowcast.verification.report import write_json

log = logging.getLogger("nowcast.watch")

ISSUED = "issued"
THRESHOLDS, SCALES = (0.1, 1.0, 5.0), (5.0,)
#: Largest number of scored lead times, evenly spaced.
LEADS = 6
#: Hours in a block of sums, and the time for which blocks are kept.
HOURS, KEPT = 6, np.timedelta64(28, "D")
#: Largest distance of a frame from the valid time that it is used for.
NEAR = np.timedelta64(30, "s")
#: Threshold in mm h-1 of the scores in ``status.json`` and of the check against the reference.
SHOWN = 1.0
SCORES = ("csi", "brier_reliability", "crps")
CASE = tuple(field.name for field in fields(CaseSums))


class Rolling:
    """Scores of the last weeks of one folder.

    - ``out``: folder of a watch; sums are written to its ``verification.npz``, scores to its
      ``verification.json``.
    - ``method``: the watch's method, which decides the references.
    """

    def __init__(self, out: Path, method: str) -> None:
        self.path, self.shown = out / "verification.npz", out / "verification.json"
        others = {"extrapolation": ["persistence"]}.get(method, ["persistence", "extrapolation"])
        if method.startswith(("auto", "model", "pysteps")):
            others.append("sprog")  # others resemble S-PROG: sums would be nearly equal
        self.others = {name: forecaster(name) for name in others}
        self.reference = others[-1]
        self.names = json.dumps([method, *self.others])
        self.sums = self._read()
        self.waits: tuple[Path | None, np.datetime64] = (None, np.datetime64("NaT"))
        self.failed: set[Path] = set()

    def _read(self) -> dict[str, NDArray[Any]]:
        try:
            with np.load(self.path, allow_pickle=False) as stored:
                sums = {name: stored[name] for name in stored.files}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, EOFError) as error:
            log.warning("%s: expected sums of scores, found %s; they begin anew", self.path, error)
            return {}
        if str(sums.get("names")) != self.names or "raw" not in sums:
            log.info("%s: scores begin anew, together with %s", self.path, ", ".join(self.others))
            return {}
        return sums

    def verify(self, forecasts: list[Path], rain: xr.Dataset) -> bool:
        """Verify the oldest forecast of ordered paths whose last valid time is past.

        Returns
        -------
        bool
            Whether there was one. A failure is logged, and the forecast is left out from then on.
        """
        known = {*self.sums.get("starts", np.empty(0, "M8[s]")).tolist()}
        for path in forecasts:
            if path in self.failed or start_of(path).item() in known:
                continue
            try:
                if self.waits[0] != path:
                    with open_forecast(path) as forecast:
                        self.waits = path, forecast["time"].values[-1]
                times = rain["time"].values
                if self.waits[1] > times[latest_of(times)]:
                    return False
                self._add(path, rain)
            except Exception as error:  # forecasts are more important than their scores
                log.warning("%s: not verified (%s: %s)", path, type(error).__name__, error)
                self.failed.add(path)
            return True
        return False

    def _add(self, path: Path, rain: xr.Dataset) -> None:
        """Add a forecast to the sums, and write the sums."""
        with open_forecast(path) as whole:
            every = -(-whole.sizes["lead_time"] // LEADS)
            dataset = whole.isel(lead_time=slice(every - 1, None, every)).load()
            last = float(whole["lead_time"].values[-1] / np.timedelta64(60, "s"))
        start = start_of(path)
        lead = dataset["lead_time"].values
        observed = _observed(rain, dataset["time"].values)
        made = {ISSUED: forecast_of(dataset)}
        try:
            for name, method in self.others.items():
                other = predict(method, rain, utc_text(start), last, thresholds=THRESHOLDS)
                made[name] = forecast_of(other.reindex(lead_time=lead))
        except DaskdlError as error:  # its input frames were removed
            log.info("%s: not verified: %s", path, error)
            made, observed = dict.fromkeys([ISSUED, *self.others], made[ISSUED]), observed * np.nan
        spacing = mean_spacing(rain, str(path)) / 1000
        windows = [max(1, round(scale / spacing)) for scale in SCALES]
        totals = Totals(len(made), len(lead), len(THRESHOLDS), ())
        case = score_case(observed, made, THRESHOLDS, windows, totals=totals)
        sums = {name: getattr(case, name) for name in CASE}
        sums["probability"] = _in_tens(totals.probability)
        sums["raw"] = _in_tens(_before_sums(dataset, observed))
        self._sum(start, lead, sums)
        with replacing(self.path) as temporary, temporary.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **self.sums)

    def _sum(
        self, start: np.datetime64, lead: NDArray[np.timedelta64], case: dict[str, NDArray[Any]]
    ) -> None:
        if "lead" in self.sums and not np.array_equal(self.sums["lead"], lead):
            log.info("%s: scores begin anew, at other lead times", self.path)
            self.sums = {}
        if not self.sums:
            self.sums = {
                name: np.empty((0, *sums.shape), sums.dtype) for name, sums in case.items()
            }
            self.sums["block"] = self.sums["starts"] = np.empty(0, "M8[s]")
            self.sums["lead"] = lead
            self.sums["names"] = np.array(self.names)
        sums = self.sums
        hours = start.astype("M8[h]").astype(int) // HOURS * HOURS
        block = np.datetime64(int(hours), "h").astype("M8[s]")
        if block not in sums["block"]:
            sums["block"] = np.append(sums["block"], block)
            for name, one in case.items():
                sums[name] = np.concatenate([sums[name], np.zeros((1, *one.shape), one.dtype)])
        at = int(np.flatnonzero(sums["block"] == block)[0])
        for name, one in case.items():
            sums[name][at] += one
        sums["starts"] = np.append(sums["starts"], start.astype("M8[s]"))
        oldest = sums["starts"].max() - KEPT
        recent = sums["block"] >= oldest
        for name in (*case, "block"):
            sums[name] = sums[name][recent]
        sums["starts"] = sums["starts"][sums["starts"] >= oldest]

    def recalibration(self) -> tuple[Verdict, Recalibration | None]:
        """Return the verdict on curves fitted now, and the curves if they are adopted."""
        if not self.sums:
            return Verdict(False, 0), None
        raw = self.sums["raw"][np.argsort(self.sums["block"])]
        raw = raw[raw[..., 0].any(axis=(1, 2, 3))]
        verdict = judge(raw)
        if not verdict.adopted:
            return verdict, None
        minutes = (self.sums["lead"] / np.timedelta64(60, "s")).tolist()
        curves = fit(raw.sum(0)).round(5).tolist()
        return verdict, Recalibration(minutes, list(THRESHOLDS), curves)

    def scores(self) -> xr.Dataset:
        """Return the scores of the kept sums, as `nowcast.verification.verify` does.

        Raises DataError if no forecast was scored yet.
        """
        blocks = np.argsort(self.sums["block"]).tolist() if self.sums else []
        order = [k for k in blocks if self.sums["pixels"][k].any()]
        if not order:
            raise DataError(f"{self.path}: expected forecasts that were verified, found none")
        cases = [CaseSums(**{name: self.sums[name][k] for name in CASE}) for k in order]
        scores = pool(
            cases, forecasters=[ISSUED, *self.others], lead_time=self.sums["lead"],
            thresholds=THRESHOLDS, scales=SCALES, reference=self.reference,
            events=np.arange(len(cases)),
        )  # fmt: skip
        totals = Totals(len(scores["forecaster"]), len(scores["lead_time"]), len(THRESHOLDS), ())
        totals.probability = self.sums["probability"].sum(0)
        add_totals(scores, totals)
        starts = np.sort(self.sums["starts"])
        scores.attrs = {
            "n_cases": len(starts), "n_events": len(cases), "reference": self.reference,
            "first_start": str(starts[0]), "last_start": str(starts[-1]),
            "interval": f"95 % of bootstrap samples of stretches of {HOURS} hours",
        }  # fmt: skip
        return scores

    def tell(self) -> dict[str, Any]:
        """Write the scores; return their summary for ``status.json``."""
        scores = self.scores()
        write_json(scores, self.shown)
        at = scores.sel(threshold=SHOWN)
        issued = at.sel(forecaster=ISSUED)
        behind = []
        if bool((issued["csi_difference_high"] < 0).any()):
            behind = [text for text in findings(scores) if text.startswith(f"{ISSUED} against")]
        minutes = lead_texts(scores)
        shown = {
            name: {
                str(one): dict(zip(minutes, _plain(at[name].sel(forecaster=one)), strict=True))
                for one in scores["forecaster"].values
            }
            for name in SCORES
        }
        names = ("n_cases", "first_start", "last_start", "reference")
        return {name: scores.attrs[name] for name in names} | shown | {"behind": behind}


def start_of(path: Path) -> np.datetime64:
    """Return the start in the name of a watch's forecast."""
    day, _, clock = path.stem.removesuffix("Z").partition("T")
    clock = ":".join(clock[k : k + 2] for k in range(0, len(clock), 2))
    return np.datetime64(f"{day[:4]}-{day[4:6]}-{day[6:]}T{clock}", "s")


def _observed(rain: xr.Dataset, valid: NDArray[np.datetime64]) -> NDArray[np.float32]:
    """Return the frames (lead, y, x) nearest to valid times, NaN without a near one."""
    times = rain["time"].values
    nearest = np.abs(times[:, np.newaxis] - valid).argmin(0)
    frames = rain["rain_rate"].isel(time=nearest).values.astype(np.float32)
    frames[np.abs(times[nearest] - valid) > NEAR] = np.nan
    return frames


def _in_tens(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return sums of many bins (..., bin, 5) added to ten bins."""
    return sums.reshape(*sums.shape[:-2], RELIABILITY_BINS, -1, 5).sum(-2)


def _before_sums(dataset: xr.Dataset, observed: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the sums (lead, threshold, BINS, 5) of probabilities before any recalibration."""
    sums = np.zeros((len(observed), len(THRESHOLDS), BINS, 5))
    raw = before(dataset)
    known = raw["threshold"].values.tolist() if NAME in raw else []
    for k, threshold in enumerate(THRESHOLDS):
        if threshold in known:
            chances = raw[NAME].sel(threshold=threshold).values
            scored = np.isfinite(chances) & np.isfinite(observed)
            for n in range(len(observed)):
                sums[n, k] = probability_sums(chances[n], observed[n] >= threshold, scored[n])
    return sums


def _plain(values: xr.DataArray) -> list[float | None]:
    return [round(v, 4) if np.isfinite(v) else None for v in values.values.tolist()]
