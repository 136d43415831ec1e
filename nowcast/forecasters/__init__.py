"""Forecasters: callables from the last frames of rain to the next ones."""

from nowcast.forecasters.baselines import baselines
from nowcast.forecasters.extrapolation import Extrapolation
from nowcast.forecasters.forecaster import Forecaster
from nowcast.forecasters.persistence import Persistence
from nowcast.forecasters.pysteps import PystepsExtrapolation

__all__ = ["Extrapolation", "Forecaster", "Persistence", "PystepsExtrapolation", "baselines"]
