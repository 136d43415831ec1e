"""Convolutions 2-D, channels last: conv2d chooses one of five ways by shape."""
