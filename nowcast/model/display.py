"""Display: a trained model as a table in notebooks."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from daskdl.nn import Module
from nowcast.model.split import PARTS, Split


def of_model(
    name: str, network: Module, told: Mapping[str, str], split: Split, about: Mapping[str, Any]
) -> str:
    """Return HTML: what a model reads and forecasts, when it was trained, and its network.

    - ``network``: whose table can be unfolded.
    - ``told``: what only this kind of model has, in the order of its rows.
    - ``about``: plain data for people.
    """
    rows = dict(told)
    rows["parameters"] = f"{sum(p.data.size for p in network.parameters()):,}"
    for part in PARTS:
        stretches = split.of_store(part, None)
        if stretches:
            first, last = min(s.first for s in stretches), max(s.last for s in stretches)
            stores = ", ".join(sorted({s.store for s in stretches}))
            rows[part] = f"{_minute(first)} to {_minute(last)} of {stores}"
    for key, value in about.items():
        if isinstance(value, str | int | float):
            rows[key] = f"{value:.4g}" if isinstance(value, float) else str(value)
    body = "".join(
        f"<tr><th style='text-align:left'>{escape(k)}</th><td>{escape(v)}</td></tr>"
        for k, v in rows.items()
    )
    layers = f"<details><summary>network</summary>{network._repr_html_()}</details>"
    return f"<table><caption>{escape(name)}</caption>{body}</table>{layers}"


def _minute(time: Any) -> str:
    return str(time.astype("datetime64[m]")).replace("T", " ")
