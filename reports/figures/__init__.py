"""One picture a file; each gives a ``Figure``, or None where there is nothing to draw."""
