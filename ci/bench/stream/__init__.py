"""Live streams against a simple loop and streamz."""
