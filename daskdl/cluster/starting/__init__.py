"""Start or find a cluster: addresses, queues, NUMA nodes, Ctrl-C."""
