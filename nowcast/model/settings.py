"""Settings of a training run; unknown names and values out of range are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from daskdl.errors import SettingsError
from nowcast.rain.texts import assigned, load_yaml, wrong_setting


class TrainSettings(BaseModel):
    """Settings of ``nowcast train``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    frame: Literal["moving", "fixed"] = Field(
        "moving",
        description="moving: a network that corrects S-PROG, in the frame that moves with the rain;"
        " fixed: ConvLSTM layers that make images of rain from images",
    )
    network: Literal["small", "rainnet", "convlstm", "trajgru"] = Field(
        "small", description="in the moving frame"
    )
    networks: int = Field(1, ge=1, description="trained one after the other, and averaged")
    loss: Literal["crps", "balanced", "sharp"] = Field("crps", description="in the moving frame")
    region: int = Field(512, ge=32, description="side of the squares whose motion is found, pixels")
    starts: int = Field(1600, ge=1, description="frames to draw samples from, in the moving frame")
    draws: int = Field(8, ge=1, description="samples of each start, at other leads and places")
    cells: int = Field(64, ge=16, description="side of a sample in cells of 2 km")
    n_in: int = Field(5, ge=1, description="frames that the network reads in the fixed frame")
    step_minutes: float | None = Field(
        None, gt=0, description="between frames; by default the longest of the stores'"
    )
    spacing_km: float | None = Field(
        None, gt=0, description="of the grid; by default the first store's"
    )
    lead_minutes: float = Field(60, gt=0, description="how far ahead it is to forecast")
    channels: tuple[int, ...] = Field((32, 32), min_length=1, description="of each ConvLSTM layer")
    kernel_size: int = Field(3, ge=1, description="of the ConvLSTM layers, odd")
    block: int = Field(4, ge=1, description="side of the blocks of pixels folded into channels")
    tile: int = Field(128, ge=8, description="side of the squares trained on, in pixels")
    tile_stride: int = Field(64, ge=1, description="distance between two such squares, in pixels")
    wet_threshold: float = Field(0.1, ge=0, description="rain rate of a wet pixel, mm h-1")
    wet_fraction: float = Field(0.02, ge=0, le=1, description="wet pixels of a window not dry")
    keep_dry: float = Field(0.1, ge=0, le=1, description="share of the dry windows kept")
    max_missing: float = Field(0.5, ge=0, le=1, description="missing pixels of a window used")
    augment: bool = Field(
        False,
        description="train on mirrored and reversed windows too; in the moving frame, on other rain"
        " rates and spacings by a factor",
    )
    fractions: tuple[float, float] = Field(
        (0.6, 0.15), description="of the rain, to train and validate"
    )
    epochs: float = Field(3, gt=0, description="passes over the training windows")
    batch_size: int = Field(8, ge=1, description="windows of an iteration")
    shards: int = Field(
        8, ge=1, description="parts of the data, each with one worker; they fix the result's bits"
    )
    rate: float = Field(2e-3, gt=0, description="learning rate at its highest")
    thresholds: tuple[float, ...] = Field((0.5, 2, 10), description="rain rates, mm h-1")
    weights: tuple[float, ...] = Field((1, 2, 4, 8), description="of pixels between thresholds")
    seed: int = Field(0, ge=0, description="of the first weights and of the order of windows")

    @property
    def step_and_spacing(self) -> tuple[np.timedelta64 | None, float | None]:
        """Step, and spacing in m, where they are set."""
        minutes, km = self.step_minutes, self.spacing_km
        step = None if minutes is None else np.timedelta64(round(60 * minutes), "s")
        return step, None if km is None else 1000 * km

    def with_own(self, fixed: dict[str, Any]) -> TrainSettings:
        """Return settings with the values that a model to start from determines."""
        stated = self.model_dump(include=self.model_fields_set)
        return TrainSettings.model_validate(stated | fixed)


def check_lead(settings: TrainSettings, minutes: float) -> None:
    """Raise a SettingsError if the lead time differs from a model to start from."""
    if "lead_minutes" in settings.model_fields_set and settings.lead_minutes != minutes:
        raise SettingsError(
            f"--lead: expected {minutes:g} min, the lead time of the model to start from, found "
            f"{settings.lead_minutes:g} min; leave it out, or train without --init"
        )


def check_frame(settings: TrainSettings) -> None:
    """Raise a SettingsError if a setting was given that the frame does not use."""
    of_fixed = ("n_in", "channels", "kernel_size", "block", "tile", "tile_stride", "thresholds",
                "weights")  # fmt: skip
    of_moving = ("network", "networks", "loss", "region", "starts", "draws", "cells")
    unused = of_fixed if settings.frame == "moving" else of_moving
    useless = [name for name in unused if name in settings.model_fields_set]
    if useless:
        other = "fixed" if settings.frame == "moving" else "moving"
        raise SettingsError(
            f"setting {useless[0]}: expected one of the {settings.frame} frame, found one of the "
            f"{other} frame; leave it out, or add --set frame={other}"
        )


def parse(file: Path | None, assignments: list[str], **options: Any) -> TrainSettings:
    """Return settings from a YAML file, ``key=value`` assignments and options; the last one wins.

    Raises SettingsError with one sentence that names the setting.
    """
    advice = "; write one setting a line, such as epochs: 5, or give them by --set NAME=VALUE"
    values = {} if file is None else load_yaml(file, advice)
    values |= assigned("--set", assignments)
    values |= {name: value for name, value in options.items() if value is not None}
    try:
        return TrainSettings.model_validate(values)
    except ValidationError as error:
        known = ", ".join(TrainSettings.model_fields)
        raise wrong_setting("setting ", error, f" (settings: {known})") from error
