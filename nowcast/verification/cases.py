"""Cases of a verification, in turn or on a cluster, kept so that a run can resume."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.cluster.bounded import Died, in_order, in_task
from daskdl.errors import ClusterError, ShapeError
from daskdl.files import replacing
from nowcast.forecasters.forecast import Forecast
from nowcast.forecasters.forecaster import Forecaster, frames_read
from nowcast.verification.archive import Archive
from nowcast.verification.case import CaseSums, Totals, score_case

if TYPE_CHECKING:
    from distributed import Client

#: Number of cases whose sums are saved in one file, for a run that resumes.
KEPT_TOGETHER = 100
SUMS = tuple(field.name for field in fields(CaseSums))


@dataclass(frozen=True)
class Settings:
    """The forecasters by name, and the settings of scores; see `nowcast.verification.verify`."""

    forecasters: Mapping[str, Forecaster]
    thresholds: tuple[float, ...]
    members: int
    seed: int

    def totals(self, leads: int) -> Totals:
        """Return empty totals, with spectra at the middle and the last lead."""
        spectra = sorted({(leads - 1) // 2, leads - 1})
        return Totals(len(self.forecasters), leads, len(self.thresholds), spectra)

    def score(
        self, archive: Archive, start: int, scored: NDArray[np.bool_], seed: int, totals: Totals
    ) -> CaseSums:
        """Score one start of an archive at its scored leads."""
        totals.spacing_km = archive.spacing_km
        frames, observed = archive.frames(start)
        made = {
            name: self._ask(name, forecaster, frames, archive, seed)
            for name, forecaster in self.forecasters.items()
        }
        return score_case(observed, made, self.thresholds, archive.windows, scored, totals)

    def _ask(
        self, name: str, forecaster: Forecaster, frames: NDArray[np.float32], archive: Archive,
        seed: int,
    ) -> Forecast:  # fmt: skip
        """Call one forecaster with a copy of the frames, which it may change; check its result."""
        made = forecaster.forecast(
            frames[-frames_read(forecaster, archive.step_minutes) :].copy(),
            archive.leads[-1],
            spacing_km=archive.spacing_km,
            step_minutes=archive.step_minutes,
            thresholds=self.thresholds,
            members=self.members,
            seed=seed,
        )
        expected = (archive.leads[-1], *frames.shape[1:])
        if made.rain.shape != expected:
            raise ShapeError(
                f"verify: expected forecasts of shape {expected} from {name}, found "
                f"{made.rain.shape}."
            )
        return made.at([lead - 1 for lead in archive.leads])


def score_all(
    archives: Sequence[Archive],
    settings: Settings,
    totals: Totals,
    *,
    client: Client | None = None,
    kept: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[tuple[Archive, int, CaseSums]]:
    """Yield archive, start and sums of each case in order, and add to the totals.

    The sums have the same bits on a cluster, and in a resumed run.

    - ``totals``: from `Settings.totals`; complete after all cases.
    - ``client``: cluster that scores the cases; without one, this process does.
    - ``kept``: folder that keeps sums; the same call resumes from it.
    - ``progress``: called as ``progress(done, total)`` after each case.
    - raises ClusterError if the workers of a case die.
    """
    jobs = [
        (archive, start, scored)
        for archive in archives
        for start, scored in zip(archive.starts.tolist(), archive.scored, strict=True)
    ]
    done = 0
    run: list[CaseSums] = []
    for case in _earlier(kept, totals):
        yield *jobs[done][:2], case
        done += 1
        if progress is not None:
            progress(done, len(jobs))
    shared: Any = settings
    if client is not None:
        shared = client.submit(_same, settings, pure=False)  # sent once, not with each call
    calls = ((shared, archive.alone(s), s, scored) for archive, s, scored in jobs[done:])
    for (_, archive, *_), result in in_order(client, in_task(client, _scored), calls, "verify"):
        if isinstance(result, Died):
            raise ClusterError(f"verify: the forecast to {archive.time[-1]}: {result.reason}")
        case, ranks = result
        totals.add(ranks)
        run.append(case)
        yield *jobs[done][:2], case
        done += 1
        if progress is not None:
            progress(done, len(jobs))
        if kept is not None and len(run) == KEPT_TOGETHER:
            _keep(kept, done, run, totals)
            run = []
    if kept is not None:
        shutil.rmtree(kept, ignore_errors=True)


def _same(settings: Settings) -> Settings:
    return settings


def _scored(
    settings: Settings, archive: Archive, start: int, scored: NDArray[np.bool_]
) -> tuple[CaseSums, Totals]:
    """Score the only start of an archive that `Archive.alone` made."""
    totals = settings.totals(len(archive.leads))
    case = settings.score(archive, archive.n_in, scored, settings.seed + start, totals)
    return case, totals


def _keep(folder: Path, done: int, run: Sequence[CaseSums], totals: Totals) -> None:
    sums = {name: np.stack([getattr(case, name) for case in run]) for name in SUMS}
    with replacing(folder / f"{done:09}.npz") as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, allow_pickle=False, **sums, **totals.arrays())


def _earlier(folder: Path | None, totals: Totals) -> Iterator[CaseSums]:
    """Yield the cases that an earlier run has kept, and take over its totals."""
    for path in sorted(folder.glob("*.npz")) if folder is not None else ():
        with np.load(path, allow_pickle=False) as stored:
            sums = {name: stored[name] for name in stored.files}
        for k in range(len(sums["pixels"])):
            yield CaseSums(**{name: sums[name][k] for name in SUMS})
        totals.take(sums)
