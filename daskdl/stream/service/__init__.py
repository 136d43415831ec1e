"""The service: ``daskdl stream`` from its settings to its end."""
