"""Functions of each number: activations, arithmetic, special functions."""
