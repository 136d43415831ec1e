"""The page of performance: figures of benchmarks, and their tables."""
