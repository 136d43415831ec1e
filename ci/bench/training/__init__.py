"""Steps of whole networks beside PyTorch's."""
