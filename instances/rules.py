"""The rules of the specification by name: one name in spec, checker, formulations, tests and README."""

from __future__ import annotations

from typing import NamedTuple

from instances.base import Document


class Rule(NamedTuple):
    """What a rule demands, and the unit in which a violation is measured."""

    says: str
    unit: str


STATIC_RULES: dict[str, Rule] = {
    "stage_count": Rule("as many placed stages and layer counts as the pipeline has stages, in a V twice", "stages"),
    "placement_live": Rule("every stage sits on an enabled die of the grid", "dies"),
    "placement_injective": Rule("no two stages share a die, but for the two of a fold in a V", "stages"),
    "v_fold": Rule("in a V-shaped schedule stages r and 2N-1-r sit on one die", "dies"),
    "placement_connected": Rule("every pair of dies in use is joined by enabled links", "dies"),
    "stage_nonempty": Rule("every stage has at least one layer", "layers"),
    "layers_cover": Rule("the layers of all stages together are the model's layers", "layers"),
    "layers_given": Rule("where the instance fixes the layer split, the plan keeps it", "layers"),
    "forbidden_cuts": Rule("no stage starts at a forbidden layer", "stages"),
    "batch_range": Rule("the batch is between 1 and max_batch", "requests"),
    "chunk_lists": Rule("one chunk list for each distinct number of uncached tokens, and no other", "lists"),
    "chunks_cover": Rule("the chunks of a list add up to its tokens", "tokens"),
    "chunk_quantum": Rule("every chunk but the last is a multiple of the quantum, and none is empty", "tokens"),
    "chunk_count": Rule("at most max_chunks chunks", "chunks"),
    "v_window": Rule("a V-shaped schedule starts no more chunks before one leaves than may be in flight", "chunks"),
    "spill_stage": Rule("a spill row names a stage, a chunk and a request shape that exist", "rows"),
    "spill_last_chunk": Rule("the last chunk of a wave is not spilled", "tokens"),
    "spill_creditor": Rule("the creditor is another stage on another die, or a host that exists", "tokens"),
    "spill_once": Rule("at most one row for a stage, chunk, creditor (the die, in a V) and shape", "rows"),
    "spill_within_chunk": Rule("what all creditors keep of a chunk is at most the chunk", "tokens"),
    "spill_kind": Rule("only a stage with full-attention or MLA layers can spill", "tokens"),
    "capacity_at_rest": Rule("weights and workspace of every die fit in its memory", "bytes"),
}
"""Rules that the static checker decides."""

REPLAY_RULES: dict[str, str] = {
    "die_serial": "a die runs its program in order, one task at a time",
    "activation_ready": "a task waits for the activations of the stage before, stage 0 for the arrival",
    "in_flight_window": "stage 0 starts a chunk only while fewer than max_in_flight are inside",
    "memory_admission": "a task starts only if its own KV fits beside what the die holds",
    "spill_write": "a write is granted when the creditor has room, first in, first out",
    "remote_fetch": "each later start of the wave and stage brings back what was granted",
    "serve_stall": "a creditor's compute stands still while it serves a fetch",
    "link_fifo": "a transfer holds all links of its route, in the order of requests",
    "release": "a stage's last chunk of a wave frees its KV at home and at creditors",
    "deadlock": "tasks that remain when no event is left make the plan infeasible",
}
"""Rules that the replay carries out; the last one is the one that a plan can break."""


class Finding(Document):
    """Whether a rule holds, by how much it is broken, and where (0 where it holds)."""

    rule: str
    ok: bool
    amount: float
    unit: str
    where: str
