"""Skill of a network by the number of events that it learned from: ``python -m ci.bench.learning``.

Simulated events are six hours of weather of several regimes, each with growth, decay and radar
errors; no test event is trained or calibrated on. The reference is S-PROG with probabilities
calibrated on the training events; the network corrects it.

With ``--data FOLDER`` events are the published ones of ci.bench.skill, on the same crops and with
probabilities of other radars only; the networks that are tested on a radar were trained on others,
with one more radar for early stopping. ``--simulated`` adds simulated events to the training.

Finished rows are saved in the folder: the same command goes on where an interrupted one stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ci.bench.skill import events
from ci.bench.skill.cases import left_out
from nowcast.forecasters import Sprog
from nowcast.forecasters.trained import Trained
from nowcast.lagrangian.exceedance import MarginTable
from nowcast.lagrangian.frames import frames_back
from nowcast.model.calibration import calibrate, read_table, write_table
from nowcast.model.settings import TrainSettings
from nowcast.model.train import train
from nowcast.rain.store import open_rain, time_step
from nowcast.simulate.archive import Days, simulate_archive
from nowcast.verification import verify

#: Seeds of the first event to train, to validate and to test on.
TRAIN, VALIDATE, JUDGE = 1000, 5000, 9000
HOURS = 6.0
#: Radars that look at simulated events in turn.
RADARS = 4
#: Samples of a training, and at most of one start.
SAMPLES, DRAWS = 12800, 16
#: Minutes between starts of forecasts that are scored.
EVERY = 30
#: Least starts with rain of a real radar that takes part, and most events of one radar.
LEAST, MOST = 5, 12
#: Number of members for the CRPS.
MEMBERS = 6


@dataclass(frozen=True)
class Fold:
    """Events that a network is trained and tested on.

    Parameters
    ----------
    name : str
        Of the test events' source.
    train, validate, judge : sequence of path
        Rain stores.
    table : MarginTable, optional
        Calibrated probabilities; by default calibrated on the training events.
    """

    name: str
    train: Sequence[Path]
    validate: Sequence[Path]
    judge: Sequence[Path] = field(repr=False)
    table: MarginTable | None = field(default=None, repr=False)

    @property
    def count(self) -> int:
        """Number of training events."""
        return len(self.train)


def simulated(folder: Path, counts: Sequence[int], judges: int, organised: bool) -> list[Fold]:
    """Return folds of simulated events; missing events are simulated first."""
    judge = _events(folder, JUDGE, judges, organised)
    return [
        Fold(
            "simulated",
            _events(folder, TRAIN, n, organised),
            _events(folder, VALIDATE, min(8, max(1, n // 2)), organised),
            judge,
        )
        for n in counts
    ]


def real(data: Path, cache: Path, more: Sequence[Path]) -> list[Fold]:
    """Return a fold for each radar: test on it, validate on another, train on the others.

    Parameters
    ----------
    data, cache : path
        See `ci.bench.skill`.
    more : sequence of path
        Stores that are in the training of every fold.
    """
    paths: dict[str, list[Path]] = defaultdict(list)
    starts: dict[str, int] = defaultdict(int)
    for event in events.loaded(data, cache, lambda _: True):
        count = len(event.starts(frames_back(event.step), [60], EVERY))
        starts[event.radar] += count
        if count:
            paths[event.radar].append(cache / f"{event.name}.zarr")
    radars = sorted(radar for radar in paths if starts[radar] >= LEAST)
    some = {radar: _spread(paths[radar]) for radar in radars}
    folds = []
    for n, radar in enumerate(radars):
        second = radars[(n + 1) % len(radars)]
        learned = [path for r in radars if r not in (radar, second) for path in some[r]]
        folds.append(Fold(radar, [*learned, *more], some[second], some[radar], left_out(radar)))
    return folds


def _spread(paths: Sequence[Path]) -> list[Path]:
    """Return `MOST` of a radar's events, evenly spaced: no radar is to outweigh the others."""
    at = np.linspace(0, len(paths) - 1, min(MOST, len(paths))).round().astype(int)
    return [paths[k] for k in at]


def _events(folder: Path, first: int, count: int, organised: bool) -> list[Path]:
    """Return the stores of simulated events, and simulate those that are missing."""
    paths = [folder / f"{first + n}.zarr" for n in range(count)]
    for n, path in enumerate(paths):
        if not path.exists():
            day = Days(1, HOURS, seed=first + n, organised=organised, radars=RADARS)
            simulate_archive(path, day)
    return paths


def learn(
    fold: Fold, folder: Path, iterations: int, choices: dict[str, Any]
) -> tuple[Trained, Sprog]:
    """Calibrate S-PROG and train a network that corrects it."""
    folder.mkdir(parents=True, exist_ok=True)
    table = fold.table
    if table is None:
        numbers = folder / "calibration.json"
        if not numbers.exists():
            write_table(calibrate(fold.train, starts=100)[0], numbers, {})
        table = read_table(numbers)
    windows = sum(open_rain(path).sizes["time"] - 8 for path in fold.train)
    starts = min(windows, choices["starts"])
    settings = TrainSettings(cells=48, batch_size=16, rate=3e-3, starts=starts)
    draws = max(2, min(DRAWS, round(SAMPLES / starts)))
    epochs = iterations * settings.batch_size / (starts * draws)
    settings = settings.model_copy(
        update=choices | {"draws": draws, "epochs": epochs, "starts": starts}
    )
    model = train(
        fold.train, folder, settings, progress=False, validate=fold.validate,
        test=fold.validate[:1], table=table, say=lambda text: print(text, file=sys.stderr),
    )  # fmt: skip
    return Trained(model), Sprog(table=table)


def judged(stores: Sequence[Path], methods: dict[str, Any], every: int) -> list[dict[str, float]]:
    """Score a network and its reference on test events; return a row for each lead time."""
    opened = [open_rain(path) for path in stores]
    step = max(int(time_step(store) / np.timedelta64(60, "s")) for store in opened)
    rain = [events.rainiest(store["rain_rate"]) for store in opened]
    scores = verify(
        rain, methods, 60 // step, every=max(1, every // step), thresholds=(1.0,), scales=(1,),
        reference="sprog", members=MEMBERS,
    )  # fmt: skip
    rows = []
    for lead in scores["lead_time"].values:
        one = scores.sel(lead_time=lead, threshold=1.0)
        row = {"lead_minutes": float(lead / np.timedelta64(60, "s"))}
        for name in ("csi", "brier", "crps"):
            row |= {f"{name}_{m}": float(one[name].sel(forecaster=m)) for m in methods}
            for end in ("", "_low", "_high"):
                difference = one[f"{name}_difference{end}"].sel(forecaster="model")
                row[f"{name}_difference{end}"] = float(difference)
        rows.append(row)
    return rows


def run(
    fold: Fold, key: dict[str, Any], saved: Path, folder: Path, every: int = EVERY
) -> list[dict[str, Any]]:
    """Return the rows of a fold, those saved by an earlier run if there are any."""
    rows = json.loads(saved.read_text()) if saved.exists() else []
    fields = {"judged_on": fold.name, "events": fold.count, "judges": len(fold.judge)} | key
    done = [row for row in rows if all(row.get(k) == v for k, v in fields.items())]
    if done:
        return done
    began = time.process_time()
    at = folder / "-".join(["model", fold.name, str(fold.count), *map(str, key.values())])
    choices = {name: key[name] for name in ("network", "networks", "seed", "starts")}
    choices["augment"] = fold.table is not None  # radars are less alike than simulated days
    trained, sprog = learn(fold, at, key["iterations"], choices)
    spent = time.process_time() - began
    made = [
        fields | {"seconds": spent} | row
        for row in judged(fold.judge, {"model": trained, "sprog": sprog}, every)
    ]
    saved.write_text(json.dumps(rows + made, indent=1) + "\n")
    return made


def main() -> None:
    """Print a line for each number of events and lead time."""
    parser = argparse.ArgumentParser(prog="python -m ci.bench.learning", description=__doc__)
    parser.add_argument("--events", default="1,3,10,30,100", help="numbers with commas between")
    parser.add_argument(
        "--organised", action="store_true", help="storms in stages, see nowcast simulate"
    )
    parser.add_argument("--judge", type=int, default=20, help="test events")
    parser.add_argument("--iterations", type=int, default=1000, help="of each training")
    parser.add_argument("--starts", type=int, default=1600, help="from which samples are drawn")
    parser.add_argument("--network", default="small", help="see nowcast train")
    parser.add_argument("--networks", type=int, default=1, help="that are averaged")
    parser.add_argument("--seed", type=int, default=0, help="of samples and first weights")
    parser.add_argument("--data", type=Path, help="radar files: real events in place of simulated")
    parser.add_argument("--radars", help="radars to test on, with commas between, for real events")
    parser.add_argument("--every", type=int, default=EVERY, help="minutes between test starts")
    parser.add_argument("--simulated", type=int, default=0, help="simulated events besides real")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "learning")
    parser.add_argument("--json", type=Path, help="rows; by default rows.json in the folder")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.data is None:
        folds = simulated(
            options.folder,
            [int(n) for n in options.events.split(",")],
            options.judge,
            options.organised,
        )
    else:
        more = _events(options.folder, TRAIN, options.simulated, options.organised)
        folds = real(options.data, events.CACHE, more)
        if options.radars:
            folds = [fold for fold in folds if fold.name in options.radars.split(",")]
    names = ("iterations", "network", "networks", "organised", "seed", "simulated", "starts")
    key = {name: getattr(options, name) for name in names}
    print(HEAD)
    for fold in folds:
        saved = options.json or options.folder / "rows.json"
        for row in run(fold, key, saved, options.folder, options.every):
            print(_line(row), flush=True)
    print("CSI and Brier score of 1 mm/h, CRPS in mm/h; 95 % intervals", file=sys.stderr)


HEAD = (
    f"{'judged on':<10}{'events':>7}{'lead':>5}{'CSI':>7}{'S-PROG':>7}  {'difference':<22}"
    f"{'Brier':>7}{'S-PROG':>7}  {'difference':<22}{'CRPS':>7}{'S-PROG':>7}  {'difference':<22}"
    f"{'CPU s':>6}"
)


def _line(row: dict[str, Any]) -> str:
    made = f"{row['judged_on']:<10}{row['events']:>7.0f}{row['lead_minutes']:>5.0f}"
    for name in ("csi", "brier", "crps"):
        low, high = (f"{row[f'{name}_difference_{end}']:+.3f}" for end in ("low", "high"))
        interval = f"{row[f'{name}_difference']:+.3f} [{low} {high}]"
        made += f"{row[f'{name}_model']:7.3f}{row[f'{name}_sprog']:7.3f}  {interval:<22}"
    return f"{made}{row['seconds']:6.0f}"


if __name__ == "__main__":
    main()
