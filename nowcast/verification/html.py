"""A verification as one self-contained HTML file: sentences, pictures and numbers."""

from __future__ import annotations

import base64
import html
import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from daskdl.files import replacing
from nowcast.plot.forecast import plot_forecast
from nowcast.plot.probabilistic import plot_probabilistic
from nowcast.plot.scores import plot_scores, window_km
from nowcast.verification.findings import findings
from nowcast.verification.report import gain

if TYPE_CHECKING:
    import xarray as xr

    from nowcast.forecasters import Forecaster

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; margin: 2em auto; max-width: 1100px;
  padding: 0 1em; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
img { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 2px 10px; text-align: right; border-bottom: 1px solid #ddd; }
th:first-child, td:first-child { text-align: left; }
.fault { color: #a01010; font-weight: 600; } .faint { color: #5a5a5a; }
"""
#: Side in km of the square that pictures show of a larger grid; a whole continent shows no detail.
SHOWN_KM = 512.0
#: Columns of the tables.
COLUMNS = (
    ("csi", "CSI"), ("pod", "POD"), ("far", "FAR"), ("bias", "bias"), ("fss", "FSS"),
    ("brier", "Brier"), ("roc_area", "ROC area"),
)  # fmt: skip


def write_report(
    scores: xr.Dataset,
    path: Path,
    stores: Sequence[xr.Dataset],
    forecasters: Mapping[str, Forecaster],
    *,
    members: int = 0,
    seed: int = 0,
) -> None:
    """Write the report of a verification.

    - ``scores``: from :func:`nowcast.verification.verify`.
    - ``stores``: the rain stores; the rainiest case is forecast again for a picture.
    - ``members``, ``seed``: as for :func:`nowcast.verification.verify`.
    """
    pictures = [
        ("By lead time and scale", lambda file: plot_scores(scores, file)),
        ("Probabilities, members and detail", lambda file: plot_probabilistic(scores, file)),
        (
            "The rainiest case",
            lambda file: _example(scores, file, stores, forecasters, members, seed),
        ),
    ]
    shown = "\n".join(f"<h2>{title}</h2>\n{_picture(draw, title)}" for title, draw in pictures)
    title = html.escape(f"Verification of rain forecasts: {scores.attrs.get('source', 'rain')}")
    simulated = "<p class=fault>Simulated data.</p>" if scores.attrs.get("simulated") else ""
    text = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{STYLE}</style></head>
<body>
<h1>{title}</h1>
{simulated}
<p class=faint>{html.escape(_summary(scores))}</p>
<h2>What the scores say</h2>
<ul>{_sentences(scores)}</ul>
{shown}
<h2>Numbers</h2>
{_tables(scores)}
<p class=faint>{html.escape(_notes(scores))}</p>
</body></html>
"""
    with replacing(Path(path)) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _picture(draw: Callable[[Path], None], title: str) -> str:
    """Return a drawn file as an image inside the page."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "picture.png"
        draw(file)
        data = base64.b64encode(file.read_bytes()).decode()
    return f'<img alt="{html.escape(title)}" src="data:image/png;base64,{data}">'


def _example(
    scores: xr.Dataset,
    file: Path,
    stores: Sequence[xr.Dataset],
    forecasters: Mapping[str, Forecaster],
    members: int,
    seed: int,
) -> None:
    """Draw the observation and all forecasts of the case with the most rain."""
    from nowcast.forecasters.predict import predict

    at = str(scores.attrs["example_time"])
    store = stores[int(scores.attrs["example_store"])]
    last = scores["lead_time"].values[-1]
    minutes = float(last / np.timedelta64(60, "s"))
    thresholds = tuple(scores["threshold"].values.tolist())
    made = {
        name: predict(
            forecaster, store, at, minutes, thresholds=thresholds, members=members, seed=seed
        )
        for name, forecaster in forecasters.items()
    }
    valid = next(iter(made.values()))["time"].values
    plot_forecast(
        made,
        file,
        observed=store["rain_rate"].reindex(time=valid),
        before=store["rain_rate"].sel(time=[np.datetime64(at.rstrip("Z"), "ns")]),
        leads=sorted({minutes / 2, minutes} & set(_minutes(made))),
        members=min(members, 2),
        zoom_km=SHOWN_KM,
    )


def _minutes(made: Mapping[str, xr.Dataset]) -> list[float]:
    first = next(iter(made.values()))
    return [float(t) for t in first["lead_time"].values / np.timedelta64(60, "s")]


def _summary(scores: xr.Dataset) -> str:
    attrs = scores.attrs
    return (
        f"{attrs['n_cases']} forecasts in {attrs['n_events']} event"
        f"{'s' if attrs['n_events'] != 1 else ''}, made from {attrs['first_start']} to "
        f"{attrs['last_start']} UTC; valid times {attrs['valid_times']}."
    )


def _notes(scores: xr.Dataset) -> str:
    attrs = scores.attrs
    return (
        f"Scored where {attrs['pixels']}; {attrs['pooling']}. Intervals: {attrs['interval']}. "
        f"FSS windows of {', '.join(f'{km:g}' for km in window_km(scores))} km; the table has "
        "the middle one. The Brier score of a yes/no forecast is the share of wrong pixels."
    )


def _sentences(scores: xr.Dataset) -> str:
    return "\n".join(
        f"<li{' class=fault' if text.startswith('Fault') else ''}>{html.escape(text)}</li>"
        for text in findings(scores)
    )


def _tables(scores: xr.Dataset) -> str:
    """Return one table per threshold, at the middle and the last lead time."""
    count = scores.sizes["lead_time"]
    middle = scores.sizes["scale"] // 2
    made = []
    for threshold in scores["threshold"].values:
        for lead in sorted({(count - 1) // 2, count - 1}):
            at = scores.sel(threshold=threshold).isel(lead_time=lead, scale=middle)
            minutes = float(at["lead_time"].values / np.timedelta64(60, "s"))
            head = "".join(f"<th>{title}</th>" for _, title in COLUMNS)
            rows = "".join(
                f"<tr><td>{html.escape(str(name))}</td>"
                + "".join(f"<td>{_number(at[key].isel(forecaster=m))}</td>" for key, _ in COLUMNS)
                + f"<td>{gain(at.isel(forecaster=m), '+.3f', ' [{:+.3f}, {:+.3f}]')}</td></tr>"
                for m, name in enumerate(at["forecaster"].values)
            )
            made.append(
                f"<h3>{threshold:g} mm/h or more, +{minutes:g} min, {int(at['events'])} observed "
                f"pixels</h3>\n<table><tr><th></th>{head}<th>CSI gain, 95 %</th></tr>{rows}</table>"
            )
    return "\n".join(made)


def _number(value: xr.DataArray) -> str:
    number = float(value)
    return "&ndash;" if math.isnan(number) else f"{number:.3f}"
