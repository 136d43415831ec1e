"""Skill of a network by the number of events that it learned from: ``python -m ci.bench.learning``.

Events are six hours of simulated weather of several regimes, each with growth, decay and radar
errors; those that judge have seeds that nothing was trained or calibrated on. The reference is
S-PROG with probabilities calibrated on the same events, which the network corrects.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from nowcast.forecasters import Sprog
from nowcast.forecasters.trained import Trained
from nowcast.model.calibration import calibrate
from nowcast.model.settings import TrainSettings
from nowcast.model.train import train
from nowcast.rain.store import open_rain
from nowcast.simulate.archive import Days, simulate_archive
from nowcast.verification import verify

#: Seeds of the first event to train, to validate and to judge on.
TRAIN, VALIDATE, JUDGE = 1000, 5000, 9000
HOURS = 6.0


def event(folder: Path, seed: int) -> Path:
    """Return the store of a simulated event, made when it is not there."""
    path = folder / f"{seed}.zarr"
    if not path.exists():
        simulate_archive(path, Days(1, HOURS, seed=seed))
    return path


def learn(folder: Path, count: int, iterations: int, networks: int) -> tuple[Trained, Sprog, float]:
    """Train on so many events; return the network, S-PROG calibrated alike, and CPU seconds."""
    began = time.process_time()
    stores = [event(folder, TRAIN + n) for n in range(count)]
    validation = [event(folder, VALIDATE + n) for n in range(max(1, count // 4))]
    table, _ = calibrate(stores)
    settings = TrainSettings(cells=48, starts=400, draws=8, networks=networks)
    windows = min(settings.starts, 28 * count)
    epochs = iterations * settings.batch_size / (windows * settings.draws)
    settings = settings.model_copy(update={"epochs": epochs})
    model = train(
        stores, folder / f"model-{count}", settings, progress=False, validate=validation,
        test=validation[:1], table=table,
    )  # fmt: skip
    return Trained(model), Sprog(table=table), time.process_time() - began


def judged(folder: Path, methods: dict[str, Any], events: int) -> list[dict[str, float]]:
    """Score a network and its reference on unseen events, a row a lead time."""
    rain = [open_rain(event(folder, JUDGE + n))["rain_rate"] for n in range(events)]
    scores = verify(rain, methods, 6, every=3, thresholds=(1.0,), scales=(1,), reference="sprog")
    rows = []
    for lead in scores["lead_time"].values:
        one = scores.sel(lead_time=lead, threshold=1.0)
        row = {"lead_minutes": float(lead / np.timedelta64(60, "s"))}
        for name in ("csi", "brier"):
            row |= {f"{name}_{m}": float(one[name].sel(forecaster=m)) for m in methods}
            for end in ("", "_low", "_high"):
                difference = one[f"{name}_difference{end}"].sel(forecaster="model")
                row[f"{name}_difference{end}"] = float(difference)
        rows.append(row)
    return rows


def main() -> None:
    """Print a line for each number of events and lead time."""
    parser = argparse.ArgumentParser(prog="python -m ci.bench.learning", description=__doc__)
    parser.add_argument("--events", default="1,3,10,30,100", help="numbers with commas between")
    parser.add_argument("--judge", type=int, default=20, help="events that judge")
    parser.add_argument("--iterations", type=int, default=400, help="of each training")
    parser.add_argument("--networks", type=int, default=1, help="that are averaged")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "learning")
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    print(
        f"{'events':>6}{'lead':>6}{'CSI':>8}{'S-PROG':>8}  {'difference':<24}{'Brier':>8}"
        f"{'S-PROG':>8}  {'difference':<26}{'CPU s':>6}"
    )
    rows = []
    for count in map(int, options.events.split(",")):
        trained, sprog, seconds = learn(options.folder, count, options.iterations, options.networks)
        for row in judged(options.folder, {"model": trained, "sprog": sprog}, options.judge):
            rows.append({"events": count, "seconds": seconds} | row)
            print(_line(rows[-1]), flush=True)
        if options.json:
            options.json.write_text(json.dumps(rows, indent=1) + "\n")
    print("CSI and Brier score of 1 mm/h on events not seen, with 95 % intervals", file=sys.stderr)


def _line(row: dict[str, float]) -> str:
    made = f"{row['events']:>6.0f}{row['lead_minutes']:>6.0f}"
    for name, digits in (("csi", 3), ("brier", 4)):
        low, high = (f"{row[f'{name}_difference_{end}']:+.{digits}f}" for end in ("low", "high"))
        interval = f"{row[f'{name}_difference']:+.{digits}f} [{low} {high}]"
        made += f"{row[f'{name}_model']:8.{digits}f}{row[f'{name}_sprog']:8.{digits}f}"
        made += f"  {interval:<{24 if name == 'csi' else 26}}"
    return f"{made}{row['seconds']:6.0f}"


if __name__ == "__main__":
    main()
