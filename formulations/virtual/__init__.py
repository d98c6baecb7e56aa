"""V-shaped schedules: their layer split, time bounds, and cuts and split as CP-SAT and MILP twins."""
