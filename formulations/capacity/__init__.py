"""The longest request for which a plan exists, usually under a budget of latency."""
