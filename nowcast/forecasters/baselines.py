"""The methods that a network is measured against."""

from __future__ import annotations

from nowcast.forecasters.extrapolation import Extrapolation
from nowcast.forecasters.forecaster import Forecaster
from nowcast.forecasters.persistence import Persistence
from nowcast.forecasters.pysteps import PystepsExtrapolation, pysteps_installed


def baselines(n_out: int) -> dict[str, Forecaster]:
    """Give persistence, our extrapolation and, where it is installed, that of pysteps, by name.

    Examples
    --------
    >>> list(baselines(12))[:2]
    ['persistence', 'extrapolation']
    """
    methods: dict[str, Forecaster] = {
        "persistence": Persistence(n_out),
        "extrapolation": Extrapolation(n_out),
    }
    if pysteps_installed():
        methods["pysteps"] = PystepsExtrapolation(n_out)
    return methods
