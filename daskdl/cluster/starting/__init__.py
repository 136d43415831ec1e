"""Starting a cluster, or finding one: addresses, queues, NUMA nodes, Ctrl-C."""
