"""A day of scans through ``nowcast watch``: seconds from arrival to forecast, and what faults do.

python -m ci.bench.service [--hours 24] [--speed 60] [--kills 0]

Scans of a simulated day arrive at a multiple of real speed; of each twelve one comes twice, one
after the next one, one is cut off and one never comes. After a quarter of them a scan comes from a
radar whose clock is years ahead. With ``--kills`` the watch is killed (-9) so often at random
moments, and started again. Over days it recalibrates: ``--hours 96 --speed 400``, a small grid.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from nowcast.forecasters.file import open_forecast
from nowcast.rain.store import open_rain
from nowcast.simulate import simulate

STEP = 10
TWICE, LATE, CUT, MISSING = 2, 5, 7, 10
#: Day of the scan from the radar whose clock is wrong.
FUTURE = "20990101"
WATCH = "from nowcast.cli import main; main()"


class Watched:
    """A process of ``nowcast watch``, and when its forecasts came out."""

    def __init__(self, scans: Path, out: Path, options: list[str]) -> None:
        self.out = out
        self.command = [sys.executable, "-c", WATCH, "watch", str(scans), "--out", str(out)]
        self.command += ["--interval", "0.5", *options]
        self.issued: dict[str, float] = {}
        self.memory: list[float] = []
        self.descriptors: list[int] = []
        self.start()

    def start(self) -> None:
        """Start the process."""
        with (self.out.parent / "log").open("a") as log:
            self.process = subprocess.Popen(self.command, stdout=log, stderr=log)

    def wait(self, seconds: float) -> None:
        """Look out for forecasts for so long."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise SystemExit(f"the watch ended; see {self.out.parent / 'log'}")
            try:
                latest = json.loads((self.out / "latest.json").read_text())["start"]
            except FileNotFoundError:
                latest = ""
            if latest and latest not in self.issued:
                self.issued[latest] = time.monotonic()
                process = Path(f"/proc/{self.process.pid}")
                pages = int((process / "statm").read_text().split()[1])
                self.memory.append(pages * 4096 / 2**20)
                self.descriptors.append(len(list((process / "fd").iterdir())))
            time.sleep(0.02)

    def kill(self) -> None:
        """Kill the process as a power cut would, and start another."""
        self.process.kill()
        self.process.wait()
        self.start()


def feed(watched: Watched, made: list[Path], scans: Path, pause: float, kills: int) -> Any:
    """Let the scans arrive; return when each did, those cut off and those that never came."""
    chance, arrived, cut, missing = random.Random(0), {}, [], []
    late: list[Path] = []
    killed = Counter(chance.choices(range(len(made)), k=kills))

    def arrive(path: Path, name: str | None = None) -> None:
        # Half first: a reader that takes it then has half a file.
        whole = path.read_bytes()
        with (scans / (name or path.name)).open("wb") as file:
            file.write(whole[: len(whole) // 2])
            file.flush()
            time.sleep(0.1)
            file.write(whole[len(whole) // 2 :])
        arrived.setdefault(path, time.monotonic())

    for i, path in enumerate(made):
        kind = i % 12
        if kind == CUT:
            (scans / path.name).write_bytes(path.read_bytes()[:3000])
            cut.append(path)
        elif kind == MISSING:
            missing.append(path)
        elif kind == LATE:
            late.append(path)
        else:
            arrive(path)
            if kind == TWICE:
                arrive(path, f"again_{path.name}")
            while late:
                arrive(late.pop())
        if i == len(made) // 4:
            ahead_of_time(path, scans)
        moments = sorted(chance.uniform(0, pause) for _ in range(killed[i]))
        for before, moment in pairwise([0.0, *moments]):
            watched.wait(moment - before)
            watched.kill()
        watched.wait(pause - (moments[-1] if moments else 0.0))
    return arrived, cut, missing + late  # the last may be one that waits for another


def ahead_of_time(path: Path, scans: Path) -> None:
    """Let a scan arrive whose radar's clock is years ahead."""
    import h5py

    copy = scans / f"simulated_{FUTURE}0000.h5"
    made = scans.parent / copy.name
    shutil.copy(path, made)
    with h5py.File(made, "r+") as file:
        for group in (file["what"], *(file[name]["what"] for name in file if "dataset" in name)):
            for name in ("date", "startdate", "enddate"):
                if name in group.attrs:
                    group.attrs[name] = np.bytes_(FUTURE)
    made.rename(copy)


def main() -> None:
    """Print the figures of one simulated day."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--speed", type=float, default=60)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--options", default="--size 256", help="of nowcast watch")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        made = simulate(Path(folder, "made"), hours=options.hours, step_minutes=STEP)
        scans, out = Path(folder, "scans"), Path(folder, "out")
        scans.mkdir()
        flags = [*options.options.split(), "--keep", "7d", "--keep-forecasts", "7d"]
        watched = Watched(scans, out, flags)
        pause = 60 * STEP / options.speed
        arrived, cut, missing = feed(watched, made, scans, pause, options.kills)
        watched.wait(10 + 2 * pause)
        watched.process.terminate()
        watched.process.wait()
        report(watched, made, arrived, cut, missing, out)


def report(
    watched: Watched, made: list[Path], arrived: dict[Path, float], cut: list[Path],
    missing: list[Path], out: Path,
) -> None:  # fmt: skip
    """Print what came of the scans."""
    names = {f"{p.stem[-12:-4]}T{p.stem[-4:]}": p for p in made}
    waits = []
    for start, issued in watched.issued.items():
        path = names[start.replace("-", "").replace(":", "").removesuffix("Z")]
        waits.append(issued - arrived[path])
    with open_rain(out / "rain.zarr") as rain:
        times = rain["time"].values
    stored = {str(t)[:16].replace("-", "").replace(":", "") for t in times}
    strange = {text for text in stored if text.startswith(FUTURE)}
    wanted = {name for name, path in names.items() if path not in {*cut, *missing}}
    whole = 0
    for path in sorted((out / "forecasts").glob("*.nc")):
        with open_forecast(path) as forecast:
            whole += bool(np.isfinite(forecast["rain_rate"].values).any())
    once, right = len(times) == len(stored), stored - strange == wanted
    print(f"scans {len(made)}: {len(cut)} cut off, {len(missing)} never came")
    print(f"in the store {len(times)}; each once: {once}; all that came: {right}")
    print(f"forecasts {whole} whole of {len(list((out / 'forecasts').iterdir()))} files")
    middle, high, most = np.quantile(waits, [0.5, 0.95, 1])
    print(f"seconds to the forecast: median {middle:.1f}, 95 % {high:.1f}, most {most:.1f}")
    first = min(3, len(watched.memory) - 1)
    for name, values in (("MiB", watched.memory), ("descriptors", watched.descriptors)):
        print(f"{name}: {values[first]:.0f} after some forecasts, {values[-1]:.0f} at the end")
    status = json.loads((out / "status.json").read_text())
    print(f"verified: {status.get('verification', {}).get('n_cases', 0)} forecasts")
    told = [line for line in (out.parent / "log").read_text().splitlines() if "Brier" in line]
    print("\n".join([*told, f"at the end: {status.get('recalibration', {}).get('told', 'none')}"]))


if __name__ == "__main__":
    main()
