"""The common part of trained models in both frames: their file and their table in notebooks."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

from nowcast.model.split import PARTS, Split

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
