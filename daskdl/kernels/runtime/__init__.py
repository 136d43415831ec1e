"""What all kernels stand on: compilation, threads, memory, elementary functions."""
