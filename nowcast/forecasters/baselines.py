"""The methods that a network is measured against."""

from __future__ import annotations

from nowcast.forecasters.extrapolation import Extrapolation
from nowcast.forecasters.forecaster import FieldForecaster, FieldsOnly, Forecaster
from nowcast.forecasters.persistence import Persistence
from nowcast.forecasters.pysteps import Pysteps, pysteps_installed


def baselines(n_out: int, spacing_km: float, step_minutes: float) -> dict[str, FieldForecaster]:
    """Give persistence, our extrapolation and, where it is installed, that of pysteps, by name.

    Examples
    --------
    >>> list(baselines(12, 1.0, 5.0))[:2]
    ['persistence', 'extrapolation']
    """
    methods: dict[str, Forecaster] = {
        "persistence": Persistence(),
        "extrapolation": Extrapolation(),
    }
    if pysteps_installed():
        methods["pysteps"] = Pysteps()
    return {
        name: FieldsOnly(method, n_out, spacing_km, step_minutes)
        for name, method in methods.items()
    }
