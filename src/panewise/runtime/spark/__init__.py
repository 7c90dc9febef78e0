"""Panewise on Spark. Nothing is imported here: workers load only what they need."""
