"""Engines against gloo, and the cost of their control."""
