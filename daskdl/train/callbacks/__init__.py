"""Callbacks: early stopping, the best model, a live picture, TensorBoard."""
