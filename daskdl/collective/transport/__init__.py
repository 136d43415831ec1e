"""Transports: how bytes go between two ranks: a socket, or memory that both share."""
