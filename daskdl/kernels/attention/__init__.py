"""Attention in tiles: scores, softmax and means of values, without a matrix of all weights."""
