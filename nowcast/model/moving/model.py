"""A trained network of the moving frame in one folder: it corrects S-PROG's probabilities."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nowcast.lagrangian.blocks import enlarge, softened
from nowcast.lagrangian.cascade import Arrival, Cascade
from nowcast.lagrangian.exceedance import THRESHOLDS, MarginTable
from nowcast.model.model import Saved
from nowcast.model.moving.features import CHANNELS, FRAMES, cell_side, features
from nowcast.model.moving.networks import Averaged
from nowcast.model.settings import TrainSettings, check_lead
from nowcast.model.split import Split

Float = NDArray[np.float32]

#: Cells along the side of a square that is computed in one pass, and the margin that it needs.
SQUARE, AROUND = 512, 64


@dataclass(frozen=True)
class MovingModel(Saved):
    """A correction of S-PROG's probabilities; a `nowcast.lagrangian.correction.Correction`."""

    network: Averaged
    #: Time steps in minutes of the archives that it was trained on, increasing.
    steps: tuple[float, ...]
    spacings: tuple[float, ...]  #: Spacings in km of their grids, increasing.
    lead_minutes: float  #: Longest lead time of its training.
    table: MarginTable  #: Table of the probabilities that it corrects.
    split: Split
    about: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.network.eval()

    @property
    def n_in(self) -> int:
        """Number of input frames."""
        return FRAMES

    def table_rows(self) -> dict[str, str]:
        """Return the rows on frames, lead time and grid."""
        return {
            "reads": f"{self.n_in} frames, of {_list(self.steps)} min apart",
            "corrects": f"S-PROG's probabilities, to {self.lead_minutes:g} min ahead",
            "grid": f"{_list(self.spacings)} km",
        }

    def __call__(self, cascade: Cascade, arrival: Arrival, table: MarginTable) -> Float:
        """Return the corrections of all thresholds' logits, (threshold, y, x) float32."""
        made = _in_squares(self.network, features(cascade, arrival, table))
        side = cell_side(cascade.spacing_km)
        return enlarge(softened(np.moveaxis(made, -1, 0)), arrival.rank.shape, side)

    def shape(self, settings: TrainSettings) -> TrainSettings:
        """Return settings with this network's shape, to continue its training.

        Raises SettingsError if they have another lead time.
        """
        check_lead(settings, self.lead_minutes)
        network = self.about.get("settings", {}).get("network", settings.network)
        shape = {"frame": "moving", "network": network, "lead_minutes": self.lead_minutes}
        return settings.with_own(shape)

    def metadata(self) -> dict[str, Any]:
        """Return the frame, data on the training, and the table of the corrected probabilities."""
        return {
            "frame": "moving",
            "steps": list(self.steps),
            "spacings": list(self.spacings),
            "lead_minutes": self.lead_minutes,
            "table": asdict(self.table),
        }

    @classmethod
    def of(cls, network: Averaged, metadata: dict[str, Any]) -> MovingModel:
        """Return the model from the network and metadata that :meth:`save` wrote.

        Raises KeyError or TypeError if something is missing.
        """
        table = {name: _tuples(pairs) for name, pairs in metadata["table"].items()}
        return cls(
            network,
            tuple(metadata["steps"]),
            tuple(metadata["spacings"]),
            metadata["lead_minutes"],
            MarginTable(**table),
            Split.from_dict(metadata["split"]),
            metadata["about"],
        )


def _tuples(values: Any) -> Any:
    """Return lists from JSON as tuples."""
    return tuple(map(_tuples, values)) if isinstance(values, list) else values


def _list(numbers: tuple[float, ...]) -> str:
    return " or ".join(f"{number:g}" for number in numbers)


def _in_squares(network: Averaged, inputs: Float) -> Float:
    """Correct a large grid square by square: (cell_y, cell_x, channel) to (..., threshold)."""
    from daskdl.tensor import no_grad

    assert inputs.shape[-1] == CHANNELS
    height, width = inputs.shape[:2]
    out = np.empty((height, width, len(THRESHOLDS)), np.float32)
    for row in range(0, height, SQUARE):
        for column in range(0, width, SQUARE):
            # A multiple of the coarsest level's cells, so that squares share levels; scenes of
            # daskdl.predict do not align them for networks that cannot be traced, such as these.
            above, left = max(row - AROUND, 0), max(column - AROUND, 0)
            part = inputs[above : row + SQUARE + AROUND, left : column + SQUARE + AROUND]
            with no_grad():
                made = network.correction(part[np.newaxis]).data[0]
            inside = out[row : row + SQUARE, column : column + SQUARE]
            inside[...] = made[
                row - above : row - above + inside.shape[0],
                column - left : column - left + inside.shape[1],
            ]
    return out
