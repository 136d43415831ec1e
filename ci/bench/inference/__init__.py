"""Predictions of whole networks against runtimes made for inference."""
