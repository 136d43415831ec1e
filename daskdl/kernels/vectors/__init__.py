"""Elementwise kernels, sums and copies over vectors."""
