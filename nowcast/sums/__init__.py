"""Rain summed over windows of time: moved between frames, by area, with probabilities."""

from nowcast.sums.accumulate import accumulate

__all__ = ["accumulate"]
