"""Runs queries: in one process (`local`) or on a cluster (`spark`)."""
