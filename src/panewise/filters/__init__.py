"""Substream filters: which groups have an aggregate beyond a threshold, without asking each of them."""
