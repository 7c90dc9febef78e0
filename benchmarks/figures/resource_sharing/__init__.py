"""Figures of "Resource sharing", and the structures that the paper compares with."""
