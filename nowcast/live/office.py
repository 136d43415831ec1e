"""All settings of a watch in one YAML file: reading, writing with defaults, and the schema."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field, field_validator, model_validator
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from daskdl.files import replacing
from nowcast.ingest.settings import IngestSettings
from nowcast.live.products import Name
from nowcast.live.settings import Alerts, Minutes, Strict
from nowcast.rain.cf import history_line


class Office(Strict):
    """Settings of ``nowcast watch``; relative paths are those of the folder it is started in."""

    source: str = Field(description="folder, pattern or address where scans arrive")
    out: Path = Field(description="folder of the store, forecasts and status")
    storage: dict[str, Any] = Field({}, description="of addresses: options of fsspec")
    ingest: IngestSettings = Field(
        IngestSettings(), description="grid, cleaning, mosaic: as the options of nowcast ingest"
    )
    method: str = Field("sprog", description="as nowcast predict has them")
    model: Path | None = Field(None, description="folder that nowcast train wrote")
    lead: Minutes | None = Field(None, description="how far ahead, such as 2h")
    members: int = Field(0, ge=0, description="of an ensemble")
    also: list[Name] = Field(
        [],
        description="written beside each forecast, each in a folder of its name: cog (Cloud-"
        "optimised GeoTIFF), grib (GRIB2), pictures (PNG, GIF, world files), cells (GeoJSON, which "
        "the page reads)",
    )
    recalibrate: bool = Field(
        True, description="bend probabilities to what came, where that proves better"
    )
    interval: float = Field(5.0, ge=0.1, description="seconds between two looks")
    keep: Minutes = Field(1440.0, description="how long frames are kept, such as 36h or 7d")
    keep_forecasts: Minutes = Field(1440.0, description="how long forecasts are kept")
    trigger: str | None = Field(
        None, description="mqtt://[user:password@]host/topic: look at once when a message comes"
    )
    port: int | None = Field(None, ge=0, le=65535, description="of /healthz and /metrics")
    alerts: Alerts | None = Field(None, description="what is alerted, and to whom; see the how-to")

    @field_validator("ingest", mode="before")
    @classmethod
    def _with_own_names(cls, value: Any) -> Any:
        return {} if value is None else value  # "ingest:" with only comments below it

    @model_validator(mode="after")
    def _with_a_method(self) -> Office:
        """Refuse a method that is none, and a model that the method would never read."""
        from nowcast.forecasters.registry import AUTO, MODEL, method_names

        if self.method not in method_names():
            raise ValueError(
                f"expected a method among {', '.join(method_names())}, found {self.method!r}"
            )
        if self.model is not None and self.method not in (AUTO, MODEL):
            raise ValueError(
                f"expected the method auto or model with a model, found {self.method}, which "
                "reads none; choose one of these, or leave the model out"
            )
        return self


class _Schema(GenerateJsonSchema):
    """A schema in which types without a JSON form are texts."""

    def handle_invalid_for_json_schema(
        self, schema: core_schema.CoreSchema, error_info: str
    ) -> JsonSchemaValue:
        return {"type": "string"}

    def encode_default(self, dft: Any) -> Any:
        return plain(dft)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the settings, for editors that complete and check YAML."""
    return Office.model_json_schema(schema_generator=_Schema)


def initial() -> str:
    """Return a YAML file of all settings with defaults and descriptions."""
    import yaml

    lines = ["# Settings of 'nowcast watch --config FILE'; 'nowcast config FILE' checks them."]
    examples = {"source": "/data/incoming", "out": "/srv/nowcast", "keep": "1d"}
    examples |= {"keep_forecasts": "1d"}
    shown = {"ingest": {"size": [256, 256], "spacing": 1000.0, "clean": "default"}}
    for name, field in Office.model_fields.items():
        default = shown.get(name, examples.get(name, field.default))
        text = yaml.safe_dump({name: plain(default)}, sort_keys=False)
        lines.append(f"# {field.description}\n{text}")
    return "\n".join(lines)


def write_resolved(settings: Office) -> Path:
    """Write all settings with defaults, and versions, into a watch's folder; without secrets."""
    import yaml

    shown = plain(settings)
    shown["storage"] = dict.fromkeys(settings.storage, "not shown")
    if settings.trigger is not None and "@" in settings.trigger:
        shown["trigger"] = "not shown"
    if settings.alerts is not None and settings.alerts.send.webhook is not None:
        shown["alerts"]["send"]["webhook"] = "not shown"
    path = settings.out / "settings.yaml"
    text = (
        f"# {history_line('watch')}, Python {platform.python_version()}, numpy {np.__version__}\n"
    )
    with replacing(path) as temporary:
        temporary.write_text(text + yaml.safe_dump(shown, sort_keys=False), encoding="utf-8")
    return path


def plain(value: Any) -> Any:
    """Return settings in the types of YAML and JSON; reading them gives the same settings."""
    if isinstance(value, Strict | IngestSettings):
        return {name: plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.timedelta64):
        return f"{value / np.timedelta64(60, 's'):g}min"
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
