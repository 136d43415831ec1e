"""Attention, embeddings and the transformer block."""
