"""Kernels against PyTorch's, a module for each family."""
