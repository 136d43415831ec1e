"""Scaling: how long an iteration takes on more and more workers, and where the time goes."""
