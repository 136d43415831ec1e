"""Transports: how bytes go between two members: a socket, or memory that both share."""
