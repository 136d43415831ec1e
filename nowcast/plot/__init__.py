"""Pictures of rain, of forecasts beside what was observed, and of their scores."""

from nowcast.plot.animation import animate_forecast
from nowcast.plot.forecast import plot_forecast
from nowcast.plot.scores import plot_scores

__all__ = ["animate_forecast", "plot_forecast", "plot_scores"]
