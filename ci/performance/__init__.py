"""The page of performance: figures that benchmarks keep, and their tables."""
