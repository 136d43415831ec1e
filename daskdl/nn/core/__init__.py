"""The module, its parameters, containers, graphs and files."""
