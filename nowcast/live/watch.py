"""A watch: new scans of a folder or an address enter a store, and the newest one gets a forecast.

All state is in the output folder: a killed watch resumes from it.
"""

from __future__ import annotations

import logging
import shutil
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from daskdl.errors import DaskdlError, DataError
from daskdl.files import remove
from nowcast.forecasters import forecaster
from nowcast.forecasters.file import open_forecast
from nowcast.forecasters.predict import latest_of, predict_to
from nowcast.forecasters.registry import used
from nowcast.ingest.ingest import ingest
from nowcast.ingest.mosaic import near_in_time
from nowcast.ingest.name_times import name_time
from nowcast.ingest.remote import Access, is_remote, listed
from nowcast.ingest.sources import find_files
from nowcast.live import products, status
from nowcast.live.alerts import Alerter
from nowcast.live.office import Office
from nowcast.live.products import PRODUCTS
from nowcast.live.rolling import Rolling
from nowcast.live.settings import minutes_of
from nowcast.live.status import iso, now
from nowcast.radar.header import ENDINGS
from nowcast.rain.store import lead_step, open_rain, opened_rain

log = logging.getLogger("nowcast.watch")

#: Number of attempts to read a file before it is given up.
TRIES = 5
#: Age (s) from which a file counts as complete at the first look.
SETTLED = 10.0
#: Number of frames up to the start that latest.json names and that are checked for gaps.
OBSERVED = 12
#: Least free bytes for a forecast to be written, also as a multiple of the last forecast's size.
LEAST_FREE, TIMES_LAST = 2**25, 3
#: A store is rewritten when its length exceeds the kept time by this fraction.
SLACK = 0.25
#: Entries of a status that are not written to its file.
UNSHOWN = ("monotonic", "uncounted")


class Watch:
    """A watch over one source, with its settings."""

    def __init__(self, settings: Office) -> None:
        self.settings = settings
        self.source, self.out, self.method = settings.source, settings.out, settings.method
        self.access = Access(settings.storage)
        self.keep = minutes_of(settings.keep)
        self.store, self.forecasts = self.out / "rain.zarr", self.out / "forecasts"
        self.forecasts.mkdir(parents=True, exist_ok=True)
        for partial in (
            *self.forecasts.glob(".*"),
            *self.out.glob(".*.json.*.partial"),
            *(partial for name in PRODUCTS for partial in self.out.glob(f"{name}/.*")),
        ):  # left by a killed watch
            remove(partial)
        for name in settings.also:
            PRODUCTS[name].require()
        self.forecaster = forecaster(self.method, settings.model)  # an invalid one is refused now
        self.rolling = Rolling(self.out, self.method)
        self.recalibration = self.rolling.recalibration()[1] if settings.recalibrate else None
        alerts = settings.alerts
        self.alerter = None if alerts is None else Alerter(self.out, alerts)
        self.status = status.resumed(self.out, self.store)
        self.cut_off = set(self.status.pop("taking", ()))  # files of a cycle that was killed
        self.sizes: dict[str, tuple[int, float]] = {}  # of each file at the last look
        self.done: set[str] = set()
        self.tries: dict[str, int] = {}
        self.failed: set[Path] = set()  # products that could not be written
        self.earlier: set[str] | None = None  # files of the first look, read before or not

    def look(self) -> list[str]:
        """Return the new and complete files: those unchanged since the look before.

        Files with a time in their names before the kept period are left out.
        """
        sizes: dict[str, tuple[int, float]] = {}
        if is_remote(self.source):
            # Remote stores list only complete files.
            sizes = {file.url: (file.size or 0, 0.0) for file in listed([self.source], self.access)}
        else:
            sources = find_files([self.source])
            for path in (*sources.named, *sources.found):
                try:
                    stat = path.stat()
                except FileNotFoundError:  # renamed meanwhile
                    continue
                sizes[str(path)] = (stat.st_size, stat.st_mtime)
        before, self.sizes = self.sizes, sizes
        if self.earlier is None:
            self.earlier = sizes.keys() - self.cut_off
        self.done &= sizes.keys()
        for name in [*self.status["damaged"]]:
            if sizes.get(name) not in (None, before.get(name)):  # another file with this name
                del self.status["damaged"][name]
                self.done.discard(name)
        times = {name: name_time(name.rpartition("/")[2]) for name in sizes}
        stated = np.sort([time for time in times.values() if time is not None])
        oldest = stated[latest_of(stated)] - self.keep if len(stated) else None
        settled = time.time() - SETTLED
        return [
            name
            for name, size in sizes.items()
            if name not in self.done
            and (before.get(name) == size or size[1] < settled)
            and ((time_of := times[name]) is None or oldest is None or time_of >= oldest)
        ]

    def cycle(self) -> bool:
        """Ingest new scans, and forecast from the newest one; return whether a forecast was made.

        Files that cannot be read are tried again in the next cycles. Any other failure is logged
        and stands in ``status.json`` under ``failing``; the watch continues.
        """
        began = time.monotonic()
        made, failing = False, ""
        try:
            names = self.look()
            self._check_disk()
            earlier = self.earlier or set()
            for part in (
                [name for name in names if name not in earlier],
                [name for name in names if name in earlier],
            ):
                if part:
                    self._save(taking=[name for name in part if name not in earlier])
                    self._take(part)
            if self.store.exists():
                made = self._forecast()
                self._write_products()
                self._alert()
                if not made:
                    self.verify()
                self._bound()
        except (DaskdlError, OSError) as error:
            failing = str(error)
            self._note_error(failing)
        self.status |= {
            "failing": failing,
            "looked": now(),
            "waiting": len(self.tries),
            "monotonic": time.monotonic(),
            "cycle_seconds": round(time.monotonic() - began, 3),
        }
        try:
            self._save()
        except OSError as error:  # such as a full disk
            log.error("%s: not written (%s)", self.out / "status.json", error)
        return made

    def _save(self, **others: Any) -> None:
        self.status["frames"] = status.frames_in(self.store)
        shown = {name: value for name, value in self.status.items() if name not in UNSHOWN}
        status.write(self.out / "status.json", shown | others)

    def _take(self, names: list[str]) -> None:
        """Ingest files; if that fails, each one alone."""
        try:
            near = near_in_time(names, self.done) if self.settings.ingest.mosaic else []
            report = ingest([*names, *near], self.store, self.settings.ingest, access=self.access)
        except DataError as error:
            if len(names) > 1:
                for name in names:
                    self._take([name])
            else:
                self._failed(names[0], str(error))
            return
        for name in names:
            if name in report.unread:
                self._failed(name, report.unread[name])
            else:
                self._leave(name)
        self.status["scans"] += report.written
        # Files of the first look may be in the store already, from an earlier watch.
        if not near and self.earlier is not None and self.earlier.isdisjoint(names):
            counted = max(0, report.existing - self.status["uncounted"])
            self.status["uncounted"] -= report.existing - counted
            self.status["repeated"] += counted
        self.status["repeated"] += report.repeated

    def _failed(self, name: str, reason: str) -> None:
        if Path(name).suffix.lower() not in ENDINGS and not self.tries.get(name):
            log.info("%s: passed over: %s", name, reason)
            self._leave(name)
            return
        reason = reason.removeprefix(f"{name}: ")
        self.tries[name] = self.tries.get(name, 0) + 1
        self._note_error(f"{name}: {reason}")
        if self.tries[name] >= TRIES:
            self.status["damaged"][name] = reason
            self._leave(name)

    def _leave(self, name: str) -> None:
        self.done.add(name)
        self.tries.pop(name, None)

    def _note_error(self, sentence: str) -> None:
        log.warning("%s", sentence)
        self.status |= {"last_error": sentence, "last_error_time": now()}

    def _forecast(self) -> bool:
        """Forecast from the newest frame, unless latest.json has its forecast."""
        last = status.read(self.out / "latest.json")
        with opened_rain(self.store) as rain:
            times = rain["time"].values
            index = latest_of(times)
            start = times[index]
            text = iso(start)
            path = self.forecasts / f"{text.replace('-', '').replace(':', '')}.nc"
            if index < 1 or (text <= last.get("start", "") and path.exists()):
                return False
            step = lead_step(rain)
            flags = _gaps(times[: index + 1], step)
            method = self._predict_to(path, rain, text, flags)
        age = (np.datetime64(time.time_ns(), "ns") - start) / np.timedelta64(1, "s")
        if age > 2 * step / np.timedelta64(1, "s"):
            flags.append("late")
        observed = [iso(one) for one in times[max(0, index + 1 - OBSERVED) : index + 1]]
        latest = {
            "start": text, "forecast": f"forecasts/{path.name}", "issued": now(),
            "method": method, "age_seconds": round(float(age)), "flags": flags,
            "observed": observed,
        }  # fmt: skip
        more = {"forecasts": True, "late": "late" in flags, "fallbacks": method != self.method}
        counts = {name: self.status[name] + more[name] for name in status.OF_FORECASTS}
        status.write(self.out / "latest.json", latest | {"counts": counts})
        self.status |= counts
        self.status["forecast_bytes"] = path.stat().st_size
        log.info("%s: forecast by %s%s", path, method, "".join(f"; {flag}" for flag in flags))
        return True

    def _predict_to(self, path: Path, rain: xr.Dataset, at: str, flags: list[str]) -> str:
        """Write a forecast; return its method: extrapolation if the chosen one fails."""
        lead = self.settings.lead
        asked: dict[str, Any] = {"members": self.settings.members, "say": log.info}
        if self.recalibration is not None:
            asked["finish"] = self.recalibration.applied
        try:
            source = f"nowcast, method {used(self.method, self.forecaster)}"
            predict_to(path, self.forecaster, rain, at, lead, method=source, **asked)
            return self.method
        except OSError:
            raise
        except Exception as error:  # such as a model's; a forecast is made nevertheless
            self._note_error(f"{self.method} failed ({type(error).__name__}: {error})")
        fallback = "extrapolation"
        source = f"nowcast, method {fallback}"
        asked = {"say": log.info}
        predict_to(path, forecaster(fallback), rain, at, lead, method=source, **asked)
        flags.append(f"{self.method} failed")
        return fallback

    def _write_products(self) -> None:
        """Write the missing products of the newest forecast, also after a kill."""
        latest = self.out / status.read(self.out / "latest.json").get("forecast", "none")
        for name in self.settings.also:
            path = self.out / name / f"{latest.stem}{PRODUCTS[name].ending}"
            if path.exists() or not latest.exists() or path in self.failed:
                continue
            try:
                with open_forecast(latest) as forecast, opened_rain(self.store) as rain:
                    PRODUCTS[name].write(forecast, rain, path)
            except Exception as error:  # the forecast itself exists
                self.failed.add(path)
                self._note_error(f"{path} not written ({type(error).__name__}: {error})")

    def _alert(self) -> None:
        """Update alerts from the newest forecast, unless that was done; send pending messages."""
        if self.alerter is None:
            return
        try:
            latest = status.read(self.out / "latest.json")
            if latest.get("start", "") > self.alerter.state.get("start", ""):
                with opened_rain(self.store) as rain:
                    self.alerter.update(self.out / latest["forecast"], rain)
            else:
                self.alerter.send()
        except Exception as error:  # forecasts continue without alerts
            self._note_error(f"alerts failed ({type(error).__name__}: {error})")
        self.status["alerts"] = self.alerter.summary()

    def verify(self) -> bool:
        """Verify the oldest possible forecast; return whether there was one.

        It runs in cycles without a forecast, so that no forecast waits for it.
        """
        with opened_rain(self.store) as rain:
            if not self.rolling.verify(sorted(self.forecasts.glob("*.nc")), rain):
                return False
        with suppress(DataError):  # when no pixel could be scored
            earlier = self.status.get("verification", {}).get("behind")
            self.status["verification"] = self.rolling.tell()
            behind = self.status["verification"]["behind"]
            if behind and behind != earlier:
                log.warning("forecasts fall behind: %s", " ".join(behind))
        self._recalibrate()
        return True

    def _recalibrate(self) -> None:
        """Take, keep or drop the recalibration by the current scores."""
        if self.settings.recalibrate:
            verdict, recalibration = self.rolling.recalibration()
            if (recalibration is None) != (self.recalibration is None):
                log.warning("%s", verdict.sentence())
            self.recalibration = recalibration
            self.status["recalibration"] = asdict(verdict) | {"told": verdict.sentence()}

    def verify_all(self) -> None:
        """Verify all possible forecasts."""
        while self.store.exists() and self.verify():
            pass
        self._save()

    def _check_disk(self) -> None:
        free = shutil.disk_usage(self.out).free
        needed = max(LEAST_FREE, TIMES_LAST * self.status.get("forecast_bytes", 0))
        self.status["free_bytes"] = free
        if free < needed:
            raise DataError(
                f"{self.out}: expected {needed / 1e6:.0f} MB free for the next scan and forecast, "
                f"found {free / 1e6:.0f} MB; make room, or keep less; nothing is written until then"
            )

    def _bound(self) -> None:
        """Remove forecasts and frames older than the kept periods."""
        products.bound_forecasts(self.out, minutes_of(self.settings.keep_forecasts))
        with open_rain(self.store) as rain:
            times = rain["time"].values
            newest = times[latest_of(times)]
            recent = times >= newest - self.keep
            if times[0] >= newest - self.keep * (1 + SLACK) or recent.all():
                return
        self._save()  # first: after a kill scans are counted by the number of frames
        products.keep_frames(self.store, recent)
        log.info("%s: %d old frames removed", self.store, int((~recent).sum()))


def _gaps(times: np.ndarray, step: np.timedelta64) -> list[str]:
    """Return a flag with the number of missing scans among the last ones, or None."""
    steps = np.rint(np.diff(times[-OBSERVED:]) / step)
    missing = int(np.maximum(steps - 1, 0).sum())
    return [f"gap {missing} scan{'s' * (missing > 1)}"] if missing else []
