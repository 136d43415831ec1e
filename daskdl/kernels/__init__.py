"""Kernels: numpy arrays in, numpy arrays out; BLAS and numba. They know nothing above them."""
