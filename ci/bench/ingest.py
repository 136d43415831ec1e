"""``python -m ci.bench.ingest``: an ingest, step by step, beside wradlib and Py-ART.

The first table tells how much false echo (from 7 dBZ on) each cleaning step takes out of simulated
sweeps whose truth is known, by kind, and how much rain it keeps; the second one how many sweeps a
core does of each step in a second: the best of all, in process time. Sweeps have 360 rays of 480
gates of 500 m; half of the radars are insensitive ones. ``pip install wradlib arm_pyart`` brings
the others; who is absent has no column.

The third table has the error of sweeps through a bright band of 7 dB before and after its step.
``--skill FOLDER`` has the skill of extrapolation before and after cleaning instead, on the volumes
of the folder of radar data and on simulated ones (`ci.bench.cleaned_skill`).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ci.bench.cleaned_skill import table
from nowcast.ingest.gridding import beam_quality, gate_weights
from nowcast.mosaic import View, merge, motion_between, moved
from nowcast.quality.attenuation import loss
from nowcast.quality.clean import DEFAULT, GIVEN, STEPS, Cleaned, clean
from nowcast.radar import reader
from nowcast.radar.header import Site
from nowcast.radar.polar.geometry import Geometry
from nowcast.radar.polar.sweep import Sweep
from nowcast.rain.grid import Grid
from nowcast.rain.rainrate import ZRRelation
from nowcast.simulate import FalseEcho, Kind, Radar, Weather, simulate
from nowcast.simulate.false_echo import Disturbed, disturb
from nowcast.simulate.radar import profile

RAIN = 7.0
SITE = Site(50.0, 5.0)
GRID = Grid.around(50.0, 5.0, size=(256, 256), spacing=1000.0)
PROGRAMS = ("nowcast", "wradlib", "Py-ART")
FOUR = " ".join(DEFAULT)
# Of the beam, metres above the sea.
PARTS = (("below the band", 0, 1500), ("in it", 1900, 2500), ("snow above it", 3000, 5000))
#: What is timed, made of a sweep beforehand; that of a cleaning returns the gates it takes out.
Prepare = Callable[[Sweep], Callable[[], Any]]
Contestants = dict[str, dict[str, Prepare]]


def sweeps(count: int) -> list[tuple[Sweep, Disturbed]]:
    """Return simulated sweeps with false echo, and their truth."""
    result = []
    for seed in range(count):
        radar = Radar(gates=480, blocked=(), gap=0.0, noise_at_1km=(-43.0, -35.0)[seed % 2])
        echo = radar.echo(Weather(seed // 2, 2), 3600.0, 0.5)
        seen = disturb(echo, radar, 0.5, FalseEcho(), (seed,))
        time_ = np.datetime64("2020-06-01", "ms")
        moments = (seen.dbz, seen.rhohv, seen.phidp, seen.coherence)
        result.append((Sweep(0.5, radar.azimuth, radar.range, time_, SITE, *moments), seen))
    return result


def ours(scan: Path) -> Contestants:
    """Return the steps of nowcast."""

    def cleaning(*steps: str) -> Prepare:
        return lambda sweep: lambda: clean(sweep, steps)

    def gridding(sweep: Sweep) -> Callable[[], Any]:
        weights = gate_weights(_geometry(sweep), GRID)
        return lambda: weights.apply(ZRRelation().rain_rate(sweep.dbz))

    def moving(sweep: Sweep) -> Callable[[], Any]:
        rain = gridding(sweep)()
        view = View(rain, beam_quality(_geometry(sweep), GRID))
        before = np.roll(rain, 3, axis=1)
        return lambda: moved(view, motion_between(before, rain, 300.0, 1000.0), 120.0)

    def merging(sweep: Sweep) -> Callable[[], Any]:
        view = View(gridding(sweep)(), beam_quality(_geometry(sweep), GRID))
        return lambda: merge([view, view], "quality")

    def reading(_: Sweep) -> Callable[[], Any]:
        return lambda: reader.read_sweeps([scan], reader.read_header(scan).format)

    # The climate needs an archive: tests/nowcast/quality/test_climate.py judges it.
    steps = {step: cleaning(step) for step in STEPS if step not in GIVEN}
    others = {"attenuation": lambda sweep: lambda: loss(sweep, "C"), "grid": gridding,
              "motion, and a map moved": moving, "mosaic of two maps": merging}  # fmt: skip
    every = {"read": reading, **steps, FOUR: cleaning(*DEFAULT), **others}
    return {name: {"nowcast": prepare} for name, prepare in every.items()}


def _geometry(sweep: Sweep) -> Geometry:
    return Geometry.of(SITE, sweep.elevation, sweep.azimuth, sweep.range)


def add_wradlib(contestants: Contestants, scan: Path) -> None:
    """Add the steps of wradlib for the same."""
    from wradlib import atten, classify, comp, dp, io, ipol

    def texture(sweep: Sweep) -> Callable[[], Any]:
        return lambda: [dp.texture(moment) for moment in (sweep.dbz, sweep.phidp, sweep.rhohv)]

    def interpolation(sweep: Sweep) -> Callable[[], Any]:
        ground, angle = _geometry(sweep).ground_range(sweep.range), np.radians(sweep.azimuth)
        source = [np.outer(turn(angle), ground).ravel() for turn in (np.sin, np.cos)]
        target = [axis.ravel() for axis in np.meshgrid(GRID.x, GRID.y)]
        weights = ipol.Idw(np.column_stack(source), np.column_stack(target))
        return lambda: weights(ZRRelation().rain_rate(sweep.dbz).ravel())

    def composing(sweep: Sweep) -> Callable[[], Any]:
        rain, one = interpolation(sweep)(), np.ones(GRID.nx * GRID.ny)
        return lambda: comp.compose_weighted([rain, rain], [one, one])

    for step, prepare in {
        "read": lambda _: lambda: io.read_opera_hdf5(str(scan)),
        "texture": texture,
        "speckle": partial(_of_filled, partial(classify.filter_gabella, tr1=12, n_p=6, tr2=1.1)),
        "attenuation": partial(_of_filled, atten.correct_attenuation_constrained),
        "grid": interpolation,
        "mosaic of two maps": composing,
    }.items():
        contestants[step]["wradlib"] = prepare


def add_pyart(contestants: Contestants, scan: Path) -> None:
    """Add the steps of Py-ART for the same."""
    import pyart

    names = {"reflectivity": "dbz", "cross_correlation_ratio": "rhohv",
             "differential_phase": "phidp", "normalized_coherent_power": "coherence"}  # fmt: skip

    def radar(sweep: Sweep) -> Any:
        made = pyart.testing.make_empty_ppi_radar(sweep.range.size, sweep.azimuth.size, 1)
        made.instrument_parameters = {"frequency": {"data": [5.6e9]}}
        made.range["data"], made.azimuth["data"] = sweep.range, sweep.azimuth
        for name, moment in names.items():
            data = np.ma.masked_invalid(getattr(sweep, moment))
            made.add_field(name, {"data": np.ma.masked_where(sweep.dbz < RAIN, data)})
        return made

    def filtering(field: str, least: float, sweep: Sweep) -> Callable[[], Any]:
        made = radar(sweep)

        def act() -> Any:
            gates = pyart.filters.GateFilter(made)
            gates.exclude_below(field, least)
            return gates.gate_excluded & (sweep.dbz >= RAIN)

        return act

    def texture(sweep: Sweep) -> Callable[[], Any]:
        made = radar(sweep)
        return lambda: [pyart.util.texture_along_ray(made, name) for name in list(names)[:3]]

    def despeckling(sweep: Sweep) -> Callable[[], Any]:
        made = radar(sweep)
        return lambda: pyart.correct.despeckle_field(made, "reflectivity", size=8).gate_excluded

    def attenuating(sweep: Sweep) -> Callable[[], Any]:
        made = radar(sweep)
        fields = {"refl_field": "reflectivity", "phidp_field": "differential_phase"}
        return lambda: pyart.correct.calculate_attenuation_zphi(
            made, fzl=4000.0, temp_ref="fixed_fzl", **fields
        )

    def gridding(radars: int, sweep: Sweep) -> Callable[[], Any]:
        sides = ((0, 2000), (-128e3, 128e3), (-128e3, 128e3))
        made = (radar(sweep),) * radars
        shape = (1, *GRID.shape)
        return lambda: pyart.map.grid_from_radars(made, shape, sides, fields=["reflectivity"])

    for step, prepare in {
        "read": lambda _: lambda: pyart.aux_io.read_odim_h5(scan, include_datasets=["dataset1"]),
        "correlation": partial(filtering, "cross_correlation_ratio", 0.8),
        "texture": texture,
        "second_trip": partial(filtering, "normalized_coherent_power", 0.22),
        "speckle": despeckling,
        "attenuation": attenuating,
        "grid": partial(gridding, 1),
        "mosaic of two maps": partial(gridding, 2),
    }.items():
        contestants[step]["Py-ART"] = prepare


def _of_filled(act: Callable[[Any], Any], sweep: Sweep) -> Callable[[], Any]:
    return partial(act, np.nan_to_num(sweep.dbz, neginf=-32.0, nan=-32.0))


def bright_band(count: int) -> Iterator[tuple[str, float, float]]:
    """Give parts of sweeps at 1.5 and 3 degrees, and their mean errors before and after.

    The truth is the rain at the ground: the same echo, heard without noise, less its profile.
    """
    plain = Radar(gates=400, blocked=(), gap=0.0)
    errors: dict[str, list[Any]] = {}
    for seed, elevation in product(range(count), (1.5, 3.0)):
        weather = Weather(seed, 2)
        echo = plain.echo(weather, 3600.0, elevation)
        band = replace(plain, bright_band=7.0)
        dbz = band.measure(weather, 3600.0, elevation, np.random.default_rng(seed))
        time_, site = np.datetime64("2020-06-01", "ms"), Site(50.0, 5.0, plain.height)
        sweep = Sweep(elevation, plain.azimuth, plain.range, time_, site, dbz, None)
        with np.errstate(divide="ignore"):
            truth = 10 * np.log10(echo / profile(plain, elevation))
        height = np.broadcast_to(plain.beam(elevation)[1], dbz.shape)
        rain = (dbz >= RAIN) & (truth >= RAIN)
        for level, known in ((2500, "2500 m, as it is"), (2200, "2200 m, 300 m too low")):
            after = clean(sweep, (), freezing=level).sweep.dbz
            for part, low, high in PARTS:
                where = rain & (height >= low) & (height < high)
                pair = [one[where] - truth[where] for one in (dbz, after)]
                errors.setdefault(f"{part}, level given {known}", []).append(pair)
    for place, pairs in errors.items():
        before, after = (np.concatenate(side).mean() for side in zip(*pairs, strict=True))
        yield place, float(before), float(after)


def judge(prepare: Prepare, volumes: list[tuple[Sweep, Disturbed]]) -> tuple[float, str]:
    """Return the least seconds of a sweep, and what is taken out and kept, or nothing."""
    prepare(volumes[0][0])()
    counts, least = np.zeros((len(Kind), 2), int), np.inf
    for sweep, seen in volumes:
        act = prepare(sweep)
        start = time.process_time()
        result = act()
        least = min(least, time.process_time() - start)
        if isinstance(result, Cleaned):
            gone, after = result.flags > 0, result.sweep.dbz
        elif isinstance(result, np.ndarray) and result.dtype.kind == "b":
            gone, after = result, np.where(result, -np.inf, sweep.dbz)
        else:
            continue
        echo = seen.dbz >= RAIN
        for kind in Kind:
            gates = echo & (seen.kind == kind)
            done = gates & ((after >= RAIN) if kind is Kind.RAIN else gone)
            counts[kind] += done.sum(), gates.sum()
    share = 100 * counts[:, 0] / np.maximum(counts[:, 1], 1)
    false = 100 * counts[1:, 0].sum() / max(counts[1:, 1].sum(), 1)
    kinds = "".join(f"{share[kind]:12.1f}" for kind in list(Kind)[1:])
    return least, f"{kinds}{false:9.1f}{share[Kind.RAIN]:11.2f}" if counts.any() else ""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sweeps", type=int, default=16)
    parser.add_argument("--skill", type=Path, help="folder of radar data, such as ../shared/radar")
    options = parser.parse_args()
    if options.skill:
        for line in table(options.skill):
            print(line, flush=True)
        return
    volumes = sweeps(options.sweeps)
    os.environ["PYART_QUIET"] = "1"
    rates: dict[str, dict[str, float]] = {}
    heads = "".join(f"{kind.name.lower():>12}" for kind in list(Kind)[1:])
    print(f"{'% taken out of':46}{heads}{'false':>9}{'rain kept':>11}")
    with tempfile.TemporaryDirectory() as folder:
        radar = Radar(gates=480, elevations=(0.5,))
        (scan,) = simulate(Path(folder), hours=0.2, radar=radar, false_echo=FalseEcho())
        contestants = ours(scan)
        for add in (add_wradlib, add_pyart):
            with contextlib.suppress(ImportError):
                add(contestants, scan)
        for step, programs in contestants.items():
            for program, prepare in programs.items():
                seconds, shares = judge(prepare, volumes)
                rates.setdefault(step, {})[program] = 1 / max(seconds, 1e-9)
                if shares:
                    print(f"{step + ', ' + program:46}{shares}", flush=True)
    print(f"\n{'sweeps/s on a core':37}{''.join(f'{program:>10}' for program in PROGRAMS)}")
    for step, programs in rates.items():
        row = (f"{programs[name]:10.0f}" if name in programs else " " * 10 for name in PROGRAMS)
        print(f"{step:37}{''.join(row)}")
    print(f"\n{'bright band: dB too much, weather without':42}{'before':>9}{'after':>9}")
    for place, before, after in bright_band(options.sweeps):
        print(f"{place:42}{before:9.1f}{after:9.1f}")


if __name__ == "__main__":
    main()
