"""Time differences in minutes, and in steps."""

from __future__ import annotations

import numpy as np

from daskdl.errors import SettingsError


def minutes(step: np.timedelta64) -> float:
    """Return a time difference in minutes."""
    return float(step / np.timedelta64(1, "s")) / 60


def frames_ahead(lead_minutes: float, step: np.timedelta64) -> int:
    """Return how many steps make up a lead time.

    Raises
    ------
    SettingsError
        When it is not a whole number of steps.
    """
    count = lead_minutes / minutes(step)
    if count < 1 or abs(count - round(count)) > 1e-6:
        raise SettingsError(
            f"lead time: expected a multiple of the frames' {minutes(step):g} min, "
            f"found {lead_minutes:g} min; choose the nearest multiple"
        )
    return round(count)
