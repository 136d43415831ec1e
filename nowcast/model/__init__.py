"""Networks that forecast: the models, their training and their files."""
