"""Alerts of a watch on probabilities over areas: start and end with hysteresis, judged afterwards.

``alerts.json`` in the folder of the watch has all state: active alerts, messages to send, and the
alerts that came true. It is written before and after messages are sent: a message that a kill cut
off is sent again, with the same id.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from nowcast.forecasters.file import open_forecast
from nowcast.live import messages
from nowcast.live.rolling import start_of
from nowcast.live.settings import Alerts, Rule, minutes_of
from nowcast.live.status import iso, now, read, write
from nowcast.rain.grid import Grid
from nowcast.rain.identity import is_simulated
from nowcast.sums.areas import Areas

log = logging.getLogger("nowcast.watch")

#: Largest number of attempts to send a message, and the time for which judged alerts are kept.
TRIES, KEPT = 10, np.timedelta64(28, "D")
#: An alert ends below this fraction of the probability at which it begins.
END = 0.6
OUTCOMES = ("hits", "false", "missed")


class Alerter:
    """The alerts of one folder: begin, end, send and judge them."""

    def __init__(self, out: Path, settings: Alerts) -> None:
        self.path, self.settings = out / "alerts.json", settings
        self.channels = messages.channels(settings.send)
        self.state: dict[str, Any] = {"on": {}, "ended": {}, "judged": [], "unsent": [], "seen": {}}
        self.state |= read(self.path)
        self.areas: Areas | None = None

    def update(self, path: Path, rain: xr.Dataset) -> None:
        """Update alerts from a new forecast and the frames up to its start; send messages."""
        if self.areas is None:
            self.areas = Areas.read(self.settings.areas, Grid.from_dataset(rain, where=str(path)))
        with open_forecast(path) as forecast:
            start = start_of(path)
            for rule in self.settings.rules:
                names = [n for n in self.areas.names if rule.area in (None, n)]
                if not names:
                    log.warning("alerts: %s: no area %r in %s", rule.name, rule.area, path)
                    continue
                for name in names:
                    place = self.areas.alone(self.areas.names.index(name))
                    key = f"{rule.name}: {name}"
                    self._judge(key, rule, place, rain, start)
                    chance = probability(rule, place, forecast)
                    self._step(key, rule, place, start, chance, is_simulated(forecast))
        self.state["start"] = iso(start)
        write(self.path, self.state)
        self.send()

    def _step(
        self, key: str, rule: Rule, place: Areas, start: np.datetime64, chance: float,
        simulated: bool,
    ) -> None:  # fmt: skip
        on, ended = self.state["on"], self.state["ended"]
        until = start + minutes_of(rule.lead)
        message = {
            "kind": "begin", "rule": rule.name, "area": place.names[0], "start": iso(start),
            "issued": now(), "from": iso(start), "to": iso(until), "probability": round(chance, 3),
            "geometry": place.geometries[0], "simulated": simulated,
        }  # fmt: skip
        event = (
            f"{rule.rate:g} mm/h" if rule.amount is None
            else f"{rule.amount:g} mm in {rule.over:g} min"
        )  # fmt: skip
        message["headline"] = f"{rule.name}, {place.names[0]}: {event} with {chance:.0%}"
        message["description"] = (
            f"From the scan of {iso(start)}: {event} or more until {iso(until)} "
            f"has a probability of {chance:.0%}."
        )
        slug = "".join(c if c.isalnum() else "-" for c in key)
        message["id"] = f"nowcast-{iso(start).replace('-', '').replace(':', '')}-{slug}"
        if key in on:
            least = END * rule.probability if rule.end is None else rule.end
            if chance >= least:
                on[key]["until"] = max(on[key]["until"], iso(until))
                return
            first = on.pop(key)
            ended[key] = iso(start)
            self.state["judged"].append(first)
            of = {"id": first["id"], "issued": first["issued"]}
            message |= {"kind": "end", "id": f"{message['id']}-end", "of": of}
            message["headline"] = f"Ended: {message['headline']}"
        elif chance >= rule.probability:
            if key in ended and start - _time(ended[key]) < minutes_of(rule.silence):
                return
            on[key] = {
                "key": key, "id": message["id"], "issued": message["issued"], "start": iso(start),
                "until": iso(until), "outcome": None,
            }  # fmt: skip
        else:
            return
        log.warning("alert: %s", message["headline"])
        self.state["unsent"] += [[name, 0, message] for name in self.channels]

    def _judge(
        self, key: str, rule: Rule, place: Areas, rain: xr.Dataset, start: np.datetime64
    ) -> None:
        """Judge alerts by the frames since the last update; record missed events."""
        alerts = [alert for alert in self.state["judged"] if alert["key"] == key]
        alerts += [self.state["on"][key]] if key in self.state["on"] else []
        seen = self.state["seen"].get(key)
        times = rain["time"].values.astype("M8[s]")
        for moment in times[(times > _time(seen)) & (times <= start)] if seen else ():
            if not observed(rule, place, rain, moment):
                continue
            covering = [
                alert for alert in alerts
                if _time(alert["start"]) <= moment <= _time(alert["until"])
                and alert["outcome"] != "missed"
            ]  # fmt: skip
            for alert in covering:
                if alert["outcome"] is None:
                    wait = (moment - _time(alert["start"])) / np.timedelta64(60, "s")
                    alert |= {"outcome": "hits", "lead_minutes": float(wait)}
            recent = [
                alert for alert in alerts
                if np.timedelta64(0) <= moment - _time(alert["until"]) <= minutes_of(rule.silence)
            ]  # fmt: skip
            if not covering and not recent:
                event = {"key": key, "start": iso(moment), "until": iso(moment)}
                alerts.append(event | {"outcome": "missed"})
                self.state["judged"].append(alerts[-1])
            elif not covering and recent[-1]["outcome"] == "missed":
                recent[-1]["until"] = iso(moment)
        for alert in alerts:
            if alert["outcome"] is None and _time(alert["until"]) <= start:
                alert["outcome"] = "false"
        self.state["seen"][key] = iso(start)
        self.state["judged"] = [
            alert for alert in self.state["judged"] if _time(alert["until"]) >= start - KEPT
        ]

    def send(self) -> None:
        """Send pending messages; a failed one is tried again at the next call."""
        unsent, self.state["unsent"] = self.state["unsent"], []
        seconds = dict.fromkeys(self.channels, 0.0)
        for name, tries, message in unsent:
            if name not in self.channels:
                continue
            if seconds[name] >= messages.PATIENCE / 2:  # the next forecast cannot wait for all
                self.state["unsent"].append([name, tries, message])
                continue
            began = time.monotonic()
            try:
                self.channels[name](message)
            except Exception as error:  # a receiver may raise anything
                last = "; it is given up" if tries + 1 == TRIES else ""
                log.warning("alert %s: not sent by %s: %s%s", message["id"], name, error, last)
                if not last:
                    self.state["unsent"].append([name, tries + 1, message])
            seconds[name] += time.monotonic() - began
        if unsent:
            write(self.path, self.state)

    def summary(self) -> dict[str, Any]:
        """Return the active alerts, and how often alerts of the last weeks came true."""
        judged = [*self.state["judged"], *self.state["on"].values()]
        counts = {name: sum(a["outcome"] == name for a in judged) for name in OUTCOMES}
        leads = [alert["lead_minutes"] for alert in judged if "lead_minutes" in alert]
        median = {"median_lead_minutes": float(np.median(leads))} if leads else {}
        active = {"on": sorted(self.state["on"]), "unsent": len(self.state["unsent"])}
        return active | counts | median


def probability(rule: Rule, place: Areas, forecast: xr.Dataset) -> float:
    """Return the probability of a rule in a place within its lead time; 0 if nothing is known.

    For a rate it is the highest of any cell and lead time. For an amount it is the share of members
    whose mean over the place reaches it within a window; a forecast without members counts as one
    member.
    """
    ahead = forecast["lead_time"].values <= minutes_of(rule.lead)
    part = forecast.isel(lead_time=np.flatnonzero(ahead))
    if not part.sizes["lead_time"]:
        return 0.0
    if rule.rate is not None:
        if "exceedance_probability" in part and rule.rate in part["threshold"].values:
            chances = part["exceedance_probability"].sel(threshold=rule.rate).values
            return float(np.nan_to_num(place.maximum(chances)).max())
        return float((np.nan_to_num(place.maximum(part["rain_rate"].values)) >= rule.rate).any())
    assert rule.amount is not None
    name = "rain_rate_members" if "rain_rate_members" in part else "rain_rate"
    means = np.nan_to_num(place.mean(part[name].values)[0][..., 0])
    step = float(np.diff(forecast["lead_time"].values, prepend=np.timedelta64(0, "ns"))[0]
                 / np.timedelta64(60, "s"))  # fmt: skip
    reached = _most(np.atleast_2d(means), step, rule.over) >= rule.amount
    return float(reached.mean())


def observed(rule: Rule, place: Areas, rain: xr.Dataset, moment: np.datetime64) -> bool:
    """Return whether a rule's rain was observed at a time, or within its window before."""
    times = rain["time"].values.astype("M8[s]")
    if rule.rate is not None:
        frame = rain["rain_rate"].isel(time=int(np.flatnonzero(times == moment)[0])).values
        return bool(np.nan_to_num(place.maximum(frame)).max() >= rule.rate)
    assert rule.amount is not None
    first = moment - minutes_of(rule.over)
    inside = np.flatnonzero((times > first) & (times <= moment))
    means = np.nan_to_num(place.mean(rain["rain_rate"].isel(time=inside).values)[0][:, 0])
    hours = np.diff(times[inside], prepend=first) / np.timedelta64(3600, "s")
    return bool(float((means * hours).sum()) >= rule.amount)


def _most(means: NDArray[np.float32], step: float, over: float) -> NDArray[np.float64]:
    """Return the largest sum in mm of each row of rates (member, lead) within ``over`` minutes."""
    width = max(1, min(means.shape[1], round(over / step)))
    sums = np.lib.stride_tricks.sliding_window_view(means, width, axis=1).sum(-1) * step / 60
    return np.asarray(sums.max(1), np.float64)


def _time(text: str) -> np.datetime64:
    return np.datetime64(text.removesuffix("Z"), "s")
