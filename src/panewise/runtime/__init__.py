"""Who runs a query: one process (`local`) or a cluster."""
