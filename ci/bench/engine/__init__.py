"""Engines beside gloo and sockets, and what control costs them."""
