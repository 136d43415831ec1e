"""Simulated weather and its radar scans, in real ODIM_H5 files."""

from nowcast.simulate.false_echo import FalseEcho, Kind
from nowcast.simulate.odim import PolarSweep, write_odim_volume
from nowcast.simulate.radar import Radar
from nowcast.simulate.scans import simulate
from nowcast.simulate.weather import Weather

__all__ = ["FalseEcho", "Kind", "PolarSweep", "Radar", "Weather", "simulate", "write_odim_volume"]
