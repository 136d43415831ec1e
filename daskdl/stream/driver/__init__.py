"""On the driver: a stream, its sessions on workers, and who reads which partition."""
