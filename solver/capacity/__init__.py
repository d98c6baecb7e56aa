"""How long a request fits: for each way to spill, the longest one for which a plan runs in the replay."""
