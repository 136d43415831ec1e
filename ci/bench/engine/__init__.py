"""Engines against gloo and sockets, and the cost of their control."""
