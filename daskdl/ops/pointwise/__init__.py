"""Elementwise functions: activations, arithmetic, special functions."""
