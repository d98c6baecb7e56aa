"""Layer split: consecutive layers on stages, the slowest stage first, memory second."""
