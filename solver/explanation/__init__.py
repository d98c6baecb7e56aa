"""Why nothing is feasible: the rules that clash, and the smallest changes that help."""
