"""The cleaning of radar sweeps, judged on simulated volumes whose truth is known.

Usage: python -m ci.bench.clean [--sweeps 16]. Prints, for each step and for all: the share of false
echo (from 7 dBZ on) that is taken out, by kind, the share of rain that is still rain, and sweeps a
second on one core; then the same for wradlib's and Py-ART's steps for the same, where they are
installed. Sweeps have 360 rays of 480 gates of 500 m; half of the radars are insensitive ones.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable

import numpy as np

from nowcast.quality.clean import DEFAULT, STEPS, clean
from nowcast.radar.polar.sweep import Sweep
from nowcast.simulate import FalseEcho, Kind, Radar, Weather
from nowcast.simulate.false_echo import Disturbed, disturb

RAIN = 7.0
#: A step's name, and a function from a sweep to the gates that it takes out and the dBZ after it.
Contestant = tuple[str, Callable[[Sweep], tuple[np.ndarray, np.ndarray]]]


def sweeps(count: int) -> list[tuple[Sweep, Disturbed]]:
    """Return simulated sweeps with false echo, and their truth."""
    result = []
    for seed in range(count):
        radar = Radar(gates=480, blocked=(), gap=0.0, noise_at_1km=(-43.0, -35.0)[seed % 2])
        echo = radar.echo(Weather(seed // 2, 2), 3600.0, 0.5)
        seen = disturb(echo, radar, 0.5, FalseEcho(), (seed,))
        time_ = np.datetime64("2020-06-01", "ms")
        moments = (seen.dbz, seen.rhohv, seen.phidp, seen.coherence)
        result.append((Sweep(0.5, radar.azimuth, radar.range, time_, None, *moments), seen))
    return result


def ours() -> list[Contestant]:
    """Return the steps, alone and together."""

    def contestant(*steps: str) -> Contestant:
        def take(sweep: Sweep) -> tuple[np.ndarray, np.ndarray]:
            result = clean(sweep, steps)
            assert result.sweep.dbz is not None
            return result.flags > 0, result.sweep.dbz

        return " ".join(steps), take

    # The climate needs an archive: tests/nowcast/quality/test_climate.py judges it.
    alone = [contestant(step) for step in STEPS if step != "climate"]
    return [*alone, contestant(*DEFAULT)]


def theirs() -> list[Contestant]:
    """Return the steps of wradlib and Py-ART for the same, of those that are installed."""
    cleaned: list[Contestant] = []
    with contextlib.suppress(ImportError):
        from wradlib.classify import filter_gabella

        def gabella(sweep: Sweep) -> tuple[np.ndarray, np.ndarray]:
            dbz = np.nan_to_num(sweep.dbz, neginf=-32.0, nan=-32.0)
            mask = filter_gabella(dbz, tr1=12, n_p=6, tr2=1.1)
            return mask, np.where(mask, -np.inf, sweep.dbz)

        cleaned.append(("wradlib filter_gabella", gabella))
    with contextlib.suppress(ImportError):
        import pyart

        def despeckle(sweep: Sweep) -> tuple[np.ndarray, np.ndarray]:
            radar = pyart.testing.make_empty_ppi_radar(sweep.range.size, sweep.azimuth.size, 1)
            dbz = np.ma.masked_less(np.nan_to_num(sweep.dbz, neginf=-99.0, nan=-99.0), RAIN)
            radar.add_field("reflectivity", {"data": dbz})
            gates = pyart.correct.despeckle_field(radar, "reflectivity", size=8)
            return gates.gate_excluded, np.where(gates.gate_excluded, -np.inf, sweep.dbz)

        cleaned.append(("Py-ART despeckle_field", despeckle))
    return cleaned


def judge(name: str, take: Callable, volumes: list[tuple[Sweep, Disturbed]]) -> str:
    """Return a row of the table."""
    take(volumes[0][0])
    counts, seconds = np.zeros((len(Kind), 2), int), np.inf
    for sweep, seen in volumes:
        start = time.process_time()
        gone, after = take(sweep)
        seconds = min(seconds, time.process_time() - start)
        echo = seen.dbz >= RAIN
        for kind in Kind:
            gates = echo & (seen.kind == kind)
            done = gates & ((after >= RAIN) if kind is Kind.RAIN else gone)
            counts[kind] += done.sum(), gates.sum()
    share = 100 * counts[:, 0] / np.maximum(counts[:, 1], 1)
    false = 100 * counts[1:, 0].sum() / counts[1:, 1].sum()
    kinds = "".join(f"{share[kind]:12.1f}" for kind in list(Kind)[1:])
    return f"{name:28}{kinds}{false:9.1f}{share[Kind.RAIN]:11.2f}{1 / max(seconds, 1e-9):11.0f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sweeps", type=int, default=16)
    volumes = sweeps(parser.parse_args().sweeps)
    heads = "".join(f"{kind.name.lower():>12}" for kind in list(Kind)[1:])
    print(f"{'% taken out of':28}{heads}{'false':>9}{'rain kept':>11}{'sweeps/s':>11}")
    for name, take in [*ours(), *theirs()]:
        print(judge(name, take, volumes), flush=True)


if __name__ == "__main__":
    main()
