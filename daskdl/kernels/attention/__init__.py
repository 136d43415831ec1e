"""Attention in tiles: scores, softmax and the mean of values without a matrix of all weights."""
