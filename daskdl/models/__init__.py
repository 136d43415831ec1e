"""The zoo: networks known by their papers, built from daskdl.nn."""

from daskdl.models.seq2seq import ConvLSTMForecaster

__all__ = ["ConvLSTMForecaster"]
