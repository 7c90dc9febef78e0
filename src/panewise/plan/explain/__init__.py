"""Decisions in words and pictures; nothing is decided here."""
