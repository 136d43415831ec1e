"""Forecasters: methods that turn the last frames of rain into a forecast of the next ones."""

from nowcast.forecasters.forecast import THRESHOLDS, Forecast
from nowcast.forecasters.forecaster import Forecaster
from nowcast.forecasters.pysteps import Pysteps
from nowcast.forecasters.registry import Extrapolation, Persistence, forecaster, method_names
from nowcast.forecasters.sprog import Sprog, Steps

__all__ = [
    "THRESHOLDS",
    "Extrapolation",
    "Forecast",
    "Forecaster",
    "Persistence",
    "Pysteps",
    "Sprog",
    "Steps",
    "forecaster",
    "method_names",
]
