"""Functions of each number: activations, arithmetic, dropout."""
