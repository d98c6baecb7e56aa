"""The command ``waferplan``: parse, call the library, print."""

from solver.cli.app import app, main

__all__ = ["app", "main"]
