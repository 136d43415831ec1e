"""Layers with int8 weights, and models in which they stand for float32 ones."""
