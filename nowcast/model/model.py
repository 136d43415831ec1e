"""A trained nowcasting model: the network and the data to use it, in one folder.

Models of both frames are :class:`Saved`: they share their file and their table in notebooks.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from daskdl.errors import DataError
from nowcast.model.settings import TrainSettings, check_lead
from nowcast.model.split import PARTS, Split, minutes

if TYPE_CHECKING:
    from daskdl.models import ConvLSTMForecaster

FILE = "model.safetensors"


class Saved:
    """A trained network with all data to use it, in one folder."""

    network: Any
    split: Split  #: The times for training, validation and test.
    about: dict[str, Any]  #: Plain data for people: training stores, settings, losses.

    def table_rows(self) -> dict[str, str]:
        """Return the table's rows that are specific to this kind of model."""
        raise NotImplementedError

    def metadata(self) -> dict[str, Any]:
        """Return the metadata that are specific to this kind of model, for JSON."""
        raise NotImplementedError

    def save(self, folder: Path) -> None:
        """Write the model to ``folder / "model.safetensors"``."""
        from daskdl.nn import save

        folder.mkdir(parents=True, exist_ok=True)
        shared = {"split": self.split.to_dict(), "about": self.about}
        save(self.network, folder / FILE, self.metadata() | shared)

    def _repr_html_(self) -> str:
        """Return the table for notebooks: the :meth:`table_rows`, the split and the network."""
        rows = self.table_rows()
        rows["parameters"] = f"{sum(p.data.size for p in self.network.parameters()):,}"
        for part in PARTS:
            stretches = self.split.of_store(part, None)
            if stretches:
                first, last = min(s.first for s in stretches), max(s.last for s in stretches)
                stores = ", ".join(sorted({s.store for s in stretches}))
                rows[part] = f"{_minute(first)} to {_minute(last)} of {stores}"
        for key, value in self.about.items():
            if isinstance(value, str | int | float):
                rows[key] = f"{value:.4g}" if isinstance(value, float) else str(value)
        body = "".join(
            f"<tr><th style='text-align:left'>{escape(k)}</th><td>{escape(v)}</td></tr>"
            for k, v in rows.items()
        )
        layers = f"<details><summary>network</summary>{self.network._repr_html_()}</details>"
        return f"<table><caption>{escape(type(self).__name__)}</caption>{body}</table>{layers}"


def _minute(time: Any) -> str:
    return str(time.astype("datetime64[m]")).replace("T", " ")


#: Number of pixels above which a grid is computed tile by tile.
LARGE = 2_000_000
Array = NDArray[np.float32]


@dataclass(frozen=True)
class RainScale:
    """A logarithmic scale: 0 mm h-1 is 0 and ``full`` is 1.

    value = ln(1 + rate / floor) / ln(1 + full / floor): linear below ``floor``, where radars see
    noise, logarithmic above it, as reflectivity is.

    Examples
    --------
    >>> scale = RainScale()
    >>> scale.to_rain(scale.to_network(np.array([0, 1, 50], "f4"))).round(3)
    array([ 0.,  1., 50.], dtype=float32)
    """

    #: In mm h-1.
    floor: float = 0.1
    full: float = 50.0

    def to_network(self, rain: Array) -> Array:
        """Scale rain rates in mm h-1; NaN stays NaN, and negative rates become 0."""
        values = np.log1p(np.maximum(rain, 0) * np.float32(1 / self.floor))
        values *= np.float32(1 / np.log1p(self.full / self.floor))
        return values

    def to_rain(self, values: Array) -> Array:
        """Return rain rates in mm h-1, between 0 and four times ``full``."""
        largest = np.log1p(4 * self.full / self.floor)
        rain = np.expm1(np.clip(values * np.log1p(self.full / self.floor), 0, largest))
        return (rain * self.floor).astype(np.float32)


@dataclass(frozen=True)
class NowcastModel(Saved):
    """A forecaster of rain, (n_in, y, x) mm h-1 -> (n_out, y, x) mm h-1."""

    network: ConvLSTMForecaster
    step: np.timedelta64  #: Time between frames.
    #: Spacing of rows and columns in m of the grid that it was trained on.
    spacing: tuple[float, float]
    scale: RainScale
    split: Split
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def n_in(self) -> int:
        """Number of input frames."""
        return self.network.n_in

    @property
    def n_out(self) -> int:
        """Number of output frames."""
        return self.network.n_out

    @property
    def lead_minutes(self) -> float:
        """Longest lead time of its training, in minutes."""
        return self.n_out * minutes(self.step)

    def table_rows(self) -> dict[str, str]:
        """Return the rows on frames and grid."""
        y, x = (f"{metres / 1000:g}" for metres in self.spacing)
        return {
            "reads": f"{self.n_in} frames, one every {minutes(self.step):g} min",
            "forecasts": f"{self.n_out} frames, to {self.lead_minutes:g} min ahead",
            "grid": f"{y} by {x} km",
        }

    def __call__(self, rain: Array) -> Array:
        """Forecast.

        - ``rain`` (n_in, y, x): mm h-1; missing pixels (NaN) count as dry.
        - returns (n_out, y, x): mm h-1, float32; NaN where the last frame is missing.
        """
        from daskdl.tensor import no_grad
        from nowcast.model.tiles import by_tiles

        if rain.ndim != 3 or len(rain) != self.n_in:
            raise DataError(
                f"model: expected {self.n_in} frames (n_in, y, x), found shape {rain.shape}; "
                f"the model was trained for {self.n_in} frames in and {self.n_out} out"
            )
        missing = np.isnan(rain[-1])
        if missing.all():
            return np.full((self.n_out, *missing.shape), np.nan, np.float32)
        # Most of a composite's frame may be out of range of all radars: only the rest is computed.
        rows, columns = (np.flatnonzero(~missing.all(axis)) for axis in (1, 0))
        window = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        height, width = missing[window].shape
        block = self.network.block
        x = np.zeros((self.n_in, height + -height % block, width + -width % block), np.float32)
        # Frame by frame, because all frames of a continent take a gigabyte.
        for frame, to in zip(rain, x, strict=True):
            to[:height, :width] = self.scale.to_network(np.nan_to_num(frame[window]))
        if x[0].size > LARGE:
            y = by_tiles(self.network, x)
        else:
            with no_grad():
                y = self.network(x[np.newaxis, ..., np.newaxis]).data[0, ..., 0]
        forecast = np.full((self.n_out, *missing.shape), np.nan, np.float32)
        for frame, to in zip(y, forecast, strict=True):
            to[window] = self.scale.to_rain(frame[:height, :width])
            to[missing] = np.nan
        return forecast

    def metadata(self) -> dict[str, Any]:
        """Return step, spacing and scale."""
        return {
            "step_seconds": int(self.step / np.timedelta64(1, "s")),
            "spacing": list(self.spacing),
            "scale": asdict(self.scale),
        }

    @classmethod
    def of(cls, network: ConvLSTMForecaster, metadata: dict[str, Any]) -> NowcastModel:
        """Return the model from the network and metadata that :meth:`save` wrote.

        Raises KeyError or TypeError if something is missing.
        """
        return cls(
            network,
            np.timedelta64(metadata["step_seconds"], "s"),
            (metadata["spacing"][0], metadata["spacing"][1]),
            RainScale(**metadata["scale"]),
            Split.from_dict(metadata["split"]),
            metadata["about"],
        )

    def shape(self, settings: TrainSettings) -> TrainSettings:
        """Return settings with this network's shape, to continue its training.

        Raises SettingsError if they have another lead time.
        """
        lead = self.n_out * minutes(self.step)
        check_lead(settings, lead)
        shape = {
            name: value
            for name, value in self.about.get("settings", {}).items()
            if name in ("channels", "kernel_size", "block")
        }
        shape |= {"frame": "fixed", "n_in": self.n_in, "lead_minutes": lead}
        return settings.with_own(shape)

    def check_fits(self, path: object, spacing: tuple[float, float], step: np.timedelta64) -> None:
        """Raise a DataError unless a store has the spacing and step of the training."""
        if step != self.step:
            raise DataError(
                f"{path}: expected frames every {minutes(self.step):g} min, as the model was "
                f"trained on, found every {minutes(step):g} min; train a model on "
                "such frames, or use --method sprog, which takes any step"
            )
        if not np.allclose(spacing, self.spacing, rtol=0.02):
            raise DataError(
                f"{path}: expected a grid of {self.spacing[0]:g} x {self.spacing[1]:g} m, as the "
                f"model was trained on, found {spacing[0]:g} x {spacing[1]:g} m; ingest with that "
                "--spacing, or train a model on this grid"
            )
