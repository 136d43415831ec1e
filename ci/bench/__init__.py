"""Benchmarks: ours and a peer's take turns in one process; results are ratios."""
