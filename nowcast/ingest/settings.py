"""The settings of an ingest: sweeps, grid, and the conversion of echo to rain."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    ValidationError,
    field_validator,
    model_validator,
)

from daskdl.errors import SettingsError
from nowcast.quality.attenuation import Band
from nowcast.quality.clean import DEFAULT, GIVEN, RHOHV, STEPS
from nowcast.radar.header import MOST_CELLS, Site
from nowcast.rain.cf import FLAGS
from nowcast.rain.rainrate import ZRRelation
from nowcast.rain.texts import wrong_setting


class IngestSettings(BaseModel):
    """Settings of :func:`nowcast.ingest.ingest`; unknown names are refused.

    Grid (``size``, ``spacing``, ``centre``), sweeps and correlation concern polar files;
    composites keep their own grid.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    size: tuple[int, int] = (256, 256)
    """Cells of the grid (ny, nx); as text ``256`` or ``200x300``."""
    spacing: FiniteFloat = Field(1000.0, gt=0)
    """Width of a cell in metres."""
    centre: tuple[float, float] | None = None
    """Latitude and longitude of the grid's middle; the radar by default."""
    site: Site | None = None
    """Site of the radar, for files without one: ``LAT,LON[,ALT]``."""
    zr: str = "marshall-palmer"
    """Name of a Z-R relation (marshall-palmer, wsr88d, fmi) or ``a,b``."""
    hail_cap: FiniteFloat | None = 53.0
    """Reflectivity in dBZ above which more counts as this much (hail); None for no cap."""
    noise: FiniteFloat | None = 7.0
    """Reflectivity in dBZ below which there is no rain; None to convert all."""
    sweeps: int = Field(1, ge=1)
    """Number of lowest elevations to use."""
    combine: Literal["lowest", "max"] = "lowest"
    """With several elevations: the lowest that sees a cell, or the strongest rain of all."""
    rhohv: float | None = Field(None, ge=0, le=1)
    """Echoes of a lower correlation coefficient are taken out whatever their texture, which is the
    step ``correlation``: ground, sea, insects and chaff lie mostly below 0.8, rain above 0.95, hail
    and melting snow down to 0.8; so does weak rain of radars that do not correct it for noise."""
    clean: tuple[str, ...] = DEFAULT
    """Steps that take out echo that is no rain (:mod:`nowcast.quality`); as text with commas, or
    ``default``, ``all``, ``none``."""
    climate: tuple[Path, ...] = ()
    """Files of ``nowcast climate``, one for each radar: their ground is taken out, and what
    obstacles take is added."""
    attenuation: Band | None = None
    """Band of a radar, C or X, whose echo that rain took on its way is added again."""
    freezing: FiniteFloat | Path | None = None
    """Height of 0 degrees Celsius above the sea in metres, or a CSV of ``time,height``: the excess
    of a bright band there is taken off (:mod:`nowcast.quality.bright_band`)."""
    keep_flags: bool = False
    """The store also has ``clean_flags``: which steps took echo out of a cell."""
    moment: str | None = None
    """Name of the reflectivity moment; DBZH or its next of kin by default."""
    fill: Literal["auto", "missing", "no echo"] = "auto"
    """Meaning of gates without a number in formats with a single code for both (CfRadial): "auto"
    takes them for no echo unless the sweep has another way to say that. "no echo" also takes cells
    of composites without a number for dry."""
    step: np.timedelta64 | None = None
    """Times are rounded to multiples of this many minutes (``5``, ``2.5min``); whole minutes by
    default. Of scans that round to one time the closest is taken."""

    mosaic: Literal["quality", "maximum", "nearest"] | None = None
    """Several radars in one map: the mean weighted by quality (:func:`nowcast.ingest.gridding.
    beam_quality`), the strongest rain, or the nearest radar. Frames then lie at multiples of
    ``step``, five minutes by default."""
    within: np.timedelta64 = np.timedelta64(5, "m")
    """Of a mosaic: scans that began so near to a frame's time take part in it."""
    offset: dict[str, FiniteFloat] = Field(default_factory=dict)
    """Decibels to add to a radar's reflectivity, by its name; also as texts ``NAME=DB``."""

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Return settings; raise SettingsError with one sentence where a value is wrong."""
        try:
            return cls(**values)
        except ValidationError as error:
            raise wrong_setting("ingest, ", error) from None

    @field_validator("size", mode="before")
    @classmethod
    def _parse_size(cls, value: Any) -> Any:
        if isinstance(value, int):
            value = (value, value)
        elif isinstance(value, str):
            parts = value.lower().split("x")
            if not all(part.strip().isdigit() for part in parts) or len(parts) not in (1, 2):
                raise ValueError("expected a number of cells like 256 or 200x300")
            value = (int(parts[0]), int(parts[-1]))
        if isinstance(value, tuple) and min(value) < 1:
            raise ValueError("expected at least one cell")
        if isinstance(value, tuple) and math.prod(value) > MOST_CELLS:
            raise ValueError(f"expected at most {MOST_CELLS} cells")
        return value

    @field_validator("centre", mode="before")
    @classmethod
    def _parse_centre(cls, value: Any) -> Any:
        if isinstance(value, str):
            try:
                site = Site.parse(value)
            except SettingsError:
                raise ValueError("expected LAT,LON in degrees") from None
            return site.latitude, site.longitude
        return value

    @field_validator("site", mode="before")
    @classmethod
    def _parse_site(cls, value: Any) -> Any:
        return Site.parse(value) if isinstance(value, str) else value

    @field_validator("clean", mode="before")
    @classmethod
    def _parse_clean(cls, value: Any) -> Any:
        every = tuple(step for step in STEPS if step not in GIVEN)
        sets = {"default": DEFAULT, "all": every, "none": ()}
        if isinstance(value, str):
            value = sets.get(value.strip(), tuple(value.replace(" ", "").split(",")))
        if unknown := [step for step in value if step not in every]:
            raise ValueError(
                f"expected steps of {', '.join(every)}, or one of {', '.join(sets)}, found "
                f"{', '.join(map(repr, unknown))}"
            )
        return tuple(step for step in STEPS if step in value)

    @field_validator("climate", mode="before")
    @classmethod
    def _parse_climate(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str | Path) else value

    @field_validator("offset", mode="before")
    @classmethod
    def _parse_offset(cls, value: Any) -> Any:
        if isinstance(value, list | tuple):
            pairs = [text.rpartition("=") for text in value]
            if not all(name for name, *_ in pairs):
                raise ValueError("expected a radar's name and decibels such as behel=-1.5")
            value = {name: number for name, _, number in pairs}
        return value

    @model_validator(mode="after")
    def _check_mosaic(self) -> Self:
        if self.mosaic is not None and self.site is not None:
            raise ValueError("expected no site for a mosaic, which has one of each radar")
        return self

    @field_validator("step", "within", mode="before")
    @classmethod
    def _parse_step(cls, value: Any) -> Any:
        if value is None or isinstance(value, np.timedelta64):
            return value
        text = str(value).strip().removesuffix("min").strip()
        try:
            seconds = 60 * float(text)
        except ValueError:
            seconds = 0.0
        if not 30 <= seconds < np.inf or seconds % 30:
            raise ValueError("expected a number of minutes like 5, 5min or 2.5min")
        return np.timedelta64(int(seconds), "s")

    @field_validator("zr")
    @classmethod
    def _check_zr(cls, value: str) -> str:
        ZRRelation.named(value)
        return value

    @property
    def relation(self) -> ZRRelation:
        """The Z-R relation with hail cap and noise threshold."""
        return ZRRelation.named(self.zr, hail_cap=self.hail_cap, noise=self.noise)

    @property
    def threshold(self) -> float:
        """The correlation coefficient of the step ``correlation``."""
        return RHOHV if self.rhohv is None else self.rhohv

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of the cleaning, in their order."""
        available = {"correlation": self.rhohv is not None, "climate": bool(self.climate)}
        return tuple(
            step
            for step in STEPS
            if available.get(step) or (step not in GIVEN and step in self.clean)
        )

    def describe(self, *, polar: bool) -> dict[str, Any]:
        """Return the attributes of ``rain_rate`` about its processing."""
        described: dict[str, Any] = {"zr_relation": str(self.relation)}
        if polar:
            tested = "correlation" in self.steps
            correlation = f"below {self.threshold:g} no rain" if tested else "no test"
            described |= {
                "elevations": f"lowest {self.sweeps}, {self.combine}",
                "correlation_test": f"RHOHV {correlation}",
            }
            if self.mosaic is not None:
                seconds = self.within / np.timedelta64(1, "s")
                described["mosaic"] = (
                    f"{self.mosaic}; scans within {seconds / 60:g} min, moved to the frame's time"
                )
            if self.offset:
                parts = (f"{name} {decibel:+g} dB" for name, decibel in sorted(self.offset.items()))
                described["calibration_offset"] = ", ".join(parts)
            others = " ".join(step for step in self.steps if step != "correlation")
            if self.attenuation is not None:
                others += f" attenuation ({self.attenuation})"
            if self.freezing is not None:
                others += " bright_band"
            described["cleaning"] = others.strip() or "none"
            if self.keep_flags:
                described["ancillary_variables"] = FLAGS
        return described
