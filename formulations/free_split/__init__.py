"""Time bounds that hold for every layer split."""
