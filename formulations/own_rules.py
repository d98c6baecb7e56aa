"""Parts of the models that are no rule of the specification, so that every other one has the name of its rule."""

from __future__ import annotations

OWN: dict[str, str] = {
    "add_if": "a row that holds while literals do",
    "attention_in_stage": "every stage has a layer with attention: some serving systems size their pages by it",
    "break_symmetry": "of placements that rotations and reflections turn into each other, one is looked at",
    "completions": "when each wave leaves the last stage",
    "flow_distance": "hops between the ends of a flow",
    "group_sizes": "as many groups of stages of each size as asked for",
    "hint": "a plan to begin from",
    "latency_budget": "a plan is at most so slow: a bound that the question sets, not the instance",
    "longest_chunk": "the longest crossing is that of every chunk, or a longer one",
    "minimise_latency": "objective",
    "minimise_memory": "objective",
    "minimise_objective": "objective",
    "minimise_time": "objective",
    "minimise_traffic": "objective",
    "one_configuration": "one batch, split and placement out of a list",
    "pair_adjacent": "partners sit on neighbouring dies where that is asked for",
    "request_length": "the length that is sought",
    "seconds_of_chunks": "how long each chunk takes on each stage",
    "slowest_stage": "the slowest stage is every stage, or a slower one",
    "soften": "objective: by how much a rule is broken",
    "spill_monotone": "what is kept elsewhere of a wave grows chunk by chunk",
    "stage_in_one_group": "groups of stages do not overlap",
    "stage_on_one_die": "every item of a flow matrix has a place",
    "stage_work": "how long each stage takes for each chunk",
    "stage_workspace": "a stage's buffer is as large as each of its layers asks for",
    "task_end": "a task ends when its compute and its fetches do",
    "worst_peak": "the worst peak is that of every group, or a higher one",
}
"""What each of them states, by the name of the function in ``cpsat`` and ``milp`` files."""
