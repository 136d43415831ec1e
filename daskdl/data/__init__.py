"""Samples in partitions, and their batches."""

from daskdl.data.batches import Batches
from daskdl.data.ragged import Ragged
from daskdl.data.samples import SampleSet

__all__ = ["Batches", "Ragged", "SampleSet"]
