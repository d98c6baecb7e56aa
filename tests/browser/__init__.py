"""Reports opened in a real browser."""
