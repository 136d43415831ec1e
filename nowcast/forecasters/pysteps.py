"""Methods of pysteps, the peer to compare with, where pysteps is installed."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import MissingExtraError, SettingsError
from nowcast.forecasters.forecast import Forecast
from nowcast.forecasters.forecaster import Forecaster, Request
from nowcast.lagrangian.frames import DRY_BELOW, DRY_DECIBEL, to_decibel

Float = NDArray[np.float32]

#: Methods of `pysteps.nowcasts` that can be asked for.
NAMES = ("extrapolation", "sprog", "anvil", "steps", "linda")


def pysteps_installed() -> bool:
    """Whether pysteps and the OpenCV that its Lucas-Kanade needs can be imported."""
    return all(importlib.util.find_spec(name) is not None for name in ("pysteps", "cv2"))


@dataclass(frozen=True)
class Pysteps:
    """A nowcast of pysteps along its Lucas-Kanade motion, with its own default settings.

    Raises
    ------
    SettingsError
        If pysteps has no such method.
    MissingExtraError
        If pysteps or OpenCV is not installed.

    References
    ----------
    Pulkkinen et al., "Pysteps: an open-source Python library for probabilistic precipitation
    nowcasting (v1.0)", Geosci. Model Dev. 12 (2019), 4185-4219.
    """

    #: One of `NAMES`; steps gives members, linda gives them where they are asked for.
    name: str = "extrapolation"

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise SettingsError(
                f"pysteps: expected one of {', '.join(NAMES)} after the colon, found "
                f"{self.name!r}; choose one, such as --method pysteps:steps"
            )
        if not pysteps_installed():
            raise MissingExtraError(
                f"pysteps:{self.name} needs pysteps and OpenCV, which are not installed: "
                "pip install 'daskdl[pysteps]'."
            )

    @property
    def n_in(self) -> int:
        """Frames that it reads."""
        return 4 if self.name == "anvil" else 3

    @property
    def least(self) -> int:
        """Frames that it needs."""
        return 2 if self.name == "extrapolation" else self.n_in

    def forecast(self, rain: Float, leads: int, **settings: Any) -> Forecast:
        """Forecast; see `nowcast.forecasters.forecaster.Forecaster.forecast`.

        NaN is where the rain would come from outside of the grid or from missing pixels. With
        members, the single field is their mean.
        """
        request = Request(rain, leads, **settings)
        past = request.past(f"pysteps:{self.name}", self.least)[-self.n_in :]
        ensemble = self.name == "steps" or (self.name == "linda" and request.members > 0)
        with _silent():
            from pysteps import motion, nowcasts

            decibel = np.nan_to_num(to_decibel(past).astype(np.float64), nan=DRY_DECIBEL)
            flow = motion.get_method("LK")(decibel, verbose=False)
            moved = nowcasts.get_method("extrapolation")(past[-1].astype(np.float64), flow, leads)
            if self.name == "extrapolation":
                return Forecast(np.asarray(moved, np.float32))
            options = self._options(request, ensemble)
            in_rates = self.name in ("anvil", "linda")
            source = np.nan_to_num(past.astype(np.float64)) if in_rates else decibel
            made = nowcasts.get_method(self.name)(source, flow, leads, **options)
        made = np.asarray(made, np.float32)
        if self.name in ("sprog", "steps"):
            made = np.where(
                made >= np.float32(10 * np.log10(DRY_BELOW)), 10 ** (made / 10), np.float32(0)
            )
        made = np.where(np.isnan(moved), np.float32(np.nan), np.maximum(np.nan_to_num(made), 0))
        if ensemble:
            return Forecast(made.mean(axis=0, dtype=np.float32), members=made)
        return Forecast(made)

    def _options(self, request: Request, ensemble: bool) -> dict[str, Any]:
        """Arguments of the method beyond rain, motion and number of leads."""
        threshold = 10 * np.log10(DRY_BELOW)
        if self.name == "sprog":
            return {"precip_thr": threshold}
        if self.name == "anvil":
            return {}
        members = max(request.members, 2)
        shared = {
            "kmperpixel": request.spacing_km,
            "timestep": request.step_minutes,
            "seed": request.seed,
        }
        if self.name == "steps":
            return shared | {"n_ens_members": members, "precip_thr": threshold}
        return shared | {"add_perturbations": ensemble, "n_ens_members": members}


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Hide what pysteps prints when it is imported and while it works."""
    with (
        contextlib.redirect_stdout(io.StringIO()),
        np.errstate(all="ignore"),
        warnings.catch_warnings(action="ignore"),
    ):
        yield


def nowcast_method(
    forecaster: Forecaster, *, spacing_km: float, step_minutes: float, **settings: Any
) -> Callable[..., NDArray[np.float64]]:
    """Return a forecaster in the form of pysteps' own nowcast methods.

    Put it into ``pysteps.nowcasts.interface._nowcast_methods``: then
    ``pysteps.nowcasts.get_method`` and the linear blending with NWP find it by its name.

    Parameters
    ----------
    forecaster : Forecaster
    spacing_km, step_minutes : float
        Of the grid and of the frames; pysteps does not give them to its methods.
    **settings
        See `nowcast.forecasters.forecaster.Forecaster.forecast`, such as ``members``.

    Returns
    -------
    callable
        ``forecast(precip, velocity, timesteps)`` of precip (time, y, x) in mm h-1 and a number of
        steps, (lead, y, x) float64, or (member, lead, y, x). The motion is measured anew: velocity
        is not used.
    """

    def forecast(
        precip: NDArray[np.floating], velocity: Any, timesteps: int, **_: Any
    ) -> NDArray[np.float64]:
        if not isinstance(timesteps, int):
            raise SettingsError(f"timesteps: expected a whole number of steps, found {timesteps!r}")
        made = forecaster.forecast(
            np.asarray(precip, np.float32), timesteps, spacing_km=spacing_km,
            step_minutes=step_minutes, **settings,
        )  # fmt: skip
        return np.asarray(made.rain if made.members is None else made.members, np.float64)

    return forecast
