"""Layers with int8 weights, and models in which they replace float32 layers."""
