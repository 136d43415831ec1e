"""Pooling over windows and over regions."""
