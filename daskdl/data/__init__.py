"""Samples in partitions, and their batches."""

from daskdl.data.arrays import Arrays
from daskdl.data.batches import Batches
from daskdl.data.partition import Partition
from daskdl.data.ragged import Ragged
from daskdl.data.recipe import Recipe
from daskdl.data.samples import SampleSet

__all__ = ["Arrays", "Batches", "Partition", "Ragged", "Recipe", "SampleSet"]
