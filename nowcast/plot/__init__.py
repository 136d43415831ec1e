"""Pictures of rain, of forecasts next to observations, and of their scores."""

from nowcast.plot.animation import animate_forecast
from nowcast.plot.figure import rain_colours
from nowcast.plot.forecast import plot_forecast
from nowcast.plot.rain import plot_rain
from nowcast.plot.scores import plot_scores

__all__ = ["animate_forecast", "plot_forecast", "plot_rain", "plot_scores", "rain_colours"]
