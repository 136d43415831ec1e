"""Runtime of all kernels: compilation, threads, memory, elementary functions."""
