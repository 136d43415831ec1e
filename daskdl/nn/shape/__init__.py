"""Layers that move, join, cut or reduce axes."""
