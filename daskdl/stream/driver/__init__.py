"""On the driver: a stream, its sessions on workers, and the assignment of partitions."""
