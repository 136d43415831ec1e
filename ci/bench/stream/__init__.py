"""Live streams beside a plain loop and streamz."""
