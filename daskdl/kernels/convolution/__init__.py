"""2-D convolutions, channels last; conv2d chooses one of five algorithms by shape."""
