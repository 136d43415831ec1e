"""Steps of whole networks against PyTorch's."""
