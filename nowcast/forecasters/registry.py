"""The forecasters by the names of ``--method``; extrapolation and persistence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import SettingsError
from nowcast.forecasters.forecast import Forecast
from nowcast.forecasters.forecaster import Forecaster, Request
from nowcast.forecasters.pysteps import NAMES, Pysteps
from nowcast.forecasters.sprog import Sprog, Steps
from nowcast.forecasters.trained import Trained
from nowcast.lagrangian.advection import advect
from nowcast.lagrangian.exceedance import SHIPPED, MarginTable
from nowcast.lagrangian.frames import BASELINE
from nowcast.lagrangian.motion import motion_field


@dataclass(frozen=True)
class Extrapolation:
    """Lagrangian persistence: the last frame carried along the motion of the last frames."""

    n_in: int = 3
    least: int = 2
    baseline: float | None = BASELINE

    def forecast(self, rain: NDArray[np.float32], leads: int, **settings: Any) -> Forecast:
        """Carry ``rain[-1]`` on; see `nowcast.forecasters.forecaster.Forecaster.forecast`.

        Pixels whose rain would come from outside of the grid, or from missing pixels, are NaN.
        """
        request = Request(rain, leads, **settings)
        past, ages = request.last("extrapolation", self.least, self.n_in, self.baseline)
        motion = motion_field(
            past, spacing_km=request.spacing_km, step_minutes=request.step_minutes, ages=ages
        )
        return Forecast(advect(past[-1], motion, leads, before=ages[-1]))


@dataclass(frozen=True)
class Persistence:
    """Forecast that repeats the last frame.

    Examples
    --------
    >>> import numpy as np
    >>> last = np.array([[0.0, 1.5]], np.float32)
    >>> Persistence().forecast(last[np.newaxis], 2, spacing_km=1, step_minutes=5).rain
    array([[[0. , 1.5]],
    <BLANKLINE>
           [[0. , 1.5]]], dtype=float32)
    """

    n_in: int = 1
    least: int = 1

    def forecast(self, rain: NDArray[np.float32], leads: int, **settings: Any) -> Forecast:
        """Repeat ``rain[-1]``; see `nowcast.forecasters.forecaster.Forecaster.forecast`."""
        past = Request(rain, leads, **settings).past("persistence", self.least)
        return Forecast(np.repeat(past[-1:], leads, axis=0))


#: Forecasters that need neither a model nor another package.
OWN: dict[str, Callable[[MarginTable], Forecaster]] = {
    "persistence": lambda _: Persistence(),
    "extrapolation": lambda _: Extrapolation(),
    "sprog": lambda table: Sprog(table=table),
    "realistic": lambda table: Sprog(table=table, realistic=True),
    "steps": lambda table: Steps(table=table),
}
AUTO, MODEL, PYSTEPS = "auto", "model", "pysteps:"


def method_names() -> list[str]:
    """Return all names, pysteps' methods too if it is not installed.

    Examples
    --------
    >>> [name for name in method_names() if ":" not in name]
    ['auto', 'persistence', 'extrapolation', 'sprog', 'realistic', 'steps', 'model']
    """
    return [AUTO, *OWN, *(PYSTEPS + name for name in NAMES), MODEL]


def used(method: str, chosen: Forecaster) -> str:
    """Return the method of a forecaster; for "auto" the one that it chose.

    Examples
    --------
    >>> used("auto", forecaster("auto")), used("steps", forecaster("steps"))
    ('sprog', 'steps')
    """
    if method != AUTO:
        return method
    return MODEL if isinstance(chosen, Trained) else "sprog"


def forecaster(
    method: str = AUTO,
    model: Path | None = None,
    table: MarginTable = SHIPPED,
    say: Callable[[str], None] = lambda _: None,
    *,
    simulated: bool = False,
) -> Forecaster:
    """Return a forecaster by its name.

    Parameters
    ----------
    method : str
        One of `method_names`. "auto" is the model, if one is given and its training proved it
        better than S-PROG on events that it had not seen, and S-PROG otherwise.
    model : path, optional
        Folder that ``nowcast train`` wrote, for "model" and "auto".
    table : MarginTable
        Numbers of the probabilities of "sprog", "steps" and "auto"; a model has its own.
    say : function of a sentence
        Gets a sentence: whether "auto" takes the model or S-PROG, and why.
    simulated : bool
        Whether the rain to forecast is simulated. "auto" takes a model that proved better on
        simulated rain for such rain only.

    Raises
    ------
    SettingsError
        When there is no such method, or "model" has no folder.
    DataError
        When the folder holds no model.
    MissingExtraError
        When pysteps is asked for and not installed.

    Examples
    --------
    >>> forecaster("persistence")
    Persistence(n_in=1, least=1)
    """
    if method in (MODEL, AUTO):
        if model is not None:
            trained = Trained.load(model)
            if method == AUTO:
                passed = trained.passed(simulated=simulated)
                taken = "it is taken" if passed else f"sprog is taken (or --method {MODEL})"
                say(f"{model}: the network is {trained.proof}; {taken}")
                return trained if passed else Sprog(table=table)
            return trained
        if method == MODEL:
            raise SettingsError(
                "--method model: expected the folder of a model too, found none; "
                "add --model FOLDER, or choose --method auto"
            )
        return Sprog(table=table)
    if method in OWN:
        return OWN[method](table)
    if method.startswith(PYSTEPS):
        return Pysteps(method.removeprefix(PYSTEPS))
    raise SettingsError(
        f"--method: expected one of {', '.join(method_names())}, found {method!r}; choose one, or "
        "leave it out"
    )
