"""Predictions of whole networks beside runtimes made for them."""
