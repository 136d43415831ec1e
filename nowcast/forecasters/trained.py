"""A trained network as a forecaster: frames are checked against what it was trained on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.forecasters.forecast import Forecast, divided
from nowcast.forecasters.forecaster import EachLead, Request
from nowcast.forecasters.sprog import Sprog
from nowcast.lagrangian.frames import BASELINE
from nowcast.model.folder import Model, load_model
from nowcast.model.moving.model import MovingModel


@dataclass(frozen=True)
class Trained(EachLead):
    """Forecaster by a network that ``nowcast train`` wrote."""

    model: Model

    @classmethod
    def load(cls, folder: Path) -> Trained:
        """Read a model's folder; DataError when there is none."""
        return cls(load_model(folder))

    @property
    def n_in(self) -> int:
        """Frames that it reads."""
        return self.model.n_in

    @property
    def least(self) -> int:
        """Frames that it needs: two in the moving frame, else as many as it reads."""
        return Sprog.least if isinstance(self.model, MovingModel) else self.model.n_in

    @property
    def baseline(self) -> float | None:
        """Minutes between the frames; None for the fixed frame, which has its own step."""
        return BASELINE if isinstance(self.model, MovingModel) else None

    @property
    def lead_minutes(self) -> float:
        """Longest lead that it was trained for, in minutes."""
        return self.model.lead_minutes

    def passed(self, *, simulated: bool = False) -> bool:
        """Whether training ended with the proof that it is better than S-PROG.

        - ``simulated``: whether on simulated rain; such a proof counts for simulated rain only.
        """
        gate = self.model.about.get("gate")
        if not isinstance(gate, dict) or gate.get("passed") is not True:
            return False
        of_simulated = gate.get("simulated", self.model.about.get("simulated", False))
        return simulated or not of_simulated

    @property
    def proof(self) -> str:
        """Return how its training ended, as the end of a sentence that begins "The network is"."""
        gate = self.model.about.get("gate")
        sentence = gate.get("sentence") if isinstance(gate, dict) else None
        return str(sentence or "not compared with sprog")

    def each_lead(
        self, rain: NDArray[np.float32], leads: int, **settings: Any
    ) -> Iterator[Forecast]:
        """Yield the forecast of each lead time; see `EachLead`.

        Raises DataError when the grid or the step is not the model's, or it was trained for fewer
        leads.
        """
        longest, request = self.model.lead_minutes, Request(rain, leads, **settings)
        ahead = leads * request.step_minutes
        if ahead > longest + 1e-6:
            raise DataError(
                f"--lead: the model was trained for {longest:g} min ahead, found "
                f"{ahead:g} min; train one for a longer lead time"
            )
        if isinstance(self.model, MovingModel):
            corrected = Sprog(self.model.table, self.model)
            yield from corrected.each_lead(rain, leads, **settings)
            return
        past = request.past("model", self.least)
        self.model.check_fits(
            "model",
            (1000 * request.spacing_km,) * 2,
            np.timedelta64(round(60 * request.step_minutes), "s"),
        )
        yield from divided(Forecast(self.model(past[-self.n_in :])[:leads]))
