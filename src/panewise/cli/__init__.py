"""The `panewise` command."""

from panewise.cli.app import main

__all__ = ["main"]
