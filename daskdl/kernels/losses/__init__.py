"""Losses and their gradients, and softmax."""
