"""Kernels beside PyTorch's, a module for each family."""
