"""Samples on the workers of a cluster: recipes as tasks, shards and where they lie."""
