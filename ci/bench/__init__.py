"""Benchmarks: ours and a peer's in one process, alternating, told as ratios."""
