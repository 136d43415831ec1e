"""Settings of a watch in YAML: alerts and their receivers; unknown names are refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from daskdl.errors import SettingsError
from daskdl.names import nearest
from nowcast.rain.texts import load_yaml, wrong_setting


def _minutes(value: Any) -> Any:
    """Return the minutes of a number or a text such as ``90min``, ``2h`` or ``7d``."""
    if not isinstance(value, str):
        return value
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(min|h|d)?\s*", value)
    if not match:
        raise ValueError("expected a time such as 90min, 36h or 7d")
    return float(match[1]) * {None: 1, "min": 1, "h": 60, "d": 1440}[match[2]]


Minutes = Annotated[float, BeforeValidator(_minutes), Field(gt=0)]


class Strict(BaseModel):
    """Settings that refuse unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Rule(Strict):
    """One alert: rain of some strength, with some probability, in some areas, within some time."""

    name: str = Field(description="name of the rule, told in its alerts")
    area: str | None = Field(None, description="name of an area; by default each area has it")
    rate: float | None = Field(
        None, gt=0, description="mm/h, one of the thresholds of forecasts, anywhere in the area"
    )
    amount: float | None = Field(
        None, gt=0, description="mm of the area's mean within 'over', by the members"
    )
    over: Minutes = Field(60.0, description="time of the amount")
    probability: float = Field(0.5, gt=0, le=1, description="from which on it is alerted")
    end: float | None = Field(
        None,
        ge=0,
        description="probability below which the alert ends; by default 0.6 of the first",
    )
    lead: Minutes = Field(60.0, description="how far ahead it is looked")
    silence: Minutes = Field(60.0, description="after an alert's end, until the next one")

    @model_validator(mode="after")
    def _one_of_both(self) -> Rule:
        if (self.rate is None) == (self.amount is None):
            raise ValueError("expected either rate or amount")
        if self.end is not None and self.end > self.probability:
            raise ValueError("expected an end that is not above probability")
        return self


class Mail(Strict):
    """A mail server, and the addresses of its messages."""

    host: str
    port: int = 25
    sender: str
    to: list[str] = Field(min_length=1)
    tls: bool = Field(False, description="STARTTLS")
    user: str | None = None
    password_file: Path | None = Field(None, description="file whose first line is the password")


class Cap(Strict):
    """CAP 1.2 files in a folder, one a message."""

    folder: Path
    sender: str = Field(description="who warns, such as warnings@example.org")
    status: Literal["Actual", "Exercise", "Test"] = "Actual"
    severity: Literal["Extreme", "Severe", "Moderate", "Minor", "Unknown"] = "Moderate"
    language: str = "en"


class Channels(Strict):
    """Receivers of alerts."""

    command: list[str] | None = Field(None, description="program; gets the message as JSON")
    webhook: str | None = Field(None, description="address that JSON is posted to")
    mail: Mail | None = None
    cap: Cap | None = None


class Alerts(Strict):
    """Alerts of a watch."""

    areas: Path = Field(description="GeoJSON of polygons or points with names")
    rules: list[Rule] = Field(min_length=1)
    send: Channels = Channels()


Settings = TypeVar("Settings", bound=BaseModel)


def read_yaml(path: Path, model: type[Settings]) -> Settings:
    """Read settings from a YAML file, and check them with `checked`."""
    return checked(load_yaml(path), model, str(path))


def checked(values: dict[str, Any], model: type[Settings], where: str) -> Settings:
    """Return settings from plain values.

    Raises SettingsError with the place and the setting, and the nearest name of an unknown one.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise _wrong(where, error, model) from None


def _wrong(where: str, error: ValidationError, model: type[BaseModel]) -> SettingsError:
    """Return the first error; for an unknown name with the nearest one."""
    first = error.errors()[0]
    if first["type"] != "extra_forbidden":
        return wrong_setting(f"{where}: ", error)
    known = list(_at(model, first["loc"][:-1]).model_fields)
    near = nearest(str(first["loc"][-1]), known)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    place = ".".join(map(str, first["loc"]))
    return SettingsError(f"{where}: {place}: expected the name of a setting, found another; {hint}")


def _at(model: Any, place: tuple[int | str, ...]) -> type[BaseModel]:
    """Return the model of the nested settings at a place."""
    for part in place:
        if isinstance(part, str) and part in model.model_fields:
            annotation = model.model_fields[part].annotation
            while args := [arg for arg in get_args(annotation) if arg is not type(None)]:
                annotation = args[0]
            model = annotation
    assert isinstance(model, type)
    assert issubclass(model, BaseModel)
    return model


def minutes_of(minutes: float) -> np.timedelta64:
    """Return minutes as a timedelta64."""
    return np.timedelta64(round(60 * minutes), "s")
