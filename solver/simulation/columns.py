"""Columns of the event loop's tables, and the numbers that it tells kinds apart by.

The last name of a table is its number of columns. ``tables.py`` says what the tables are.
"""

from __future__ import annotations

DIE, DURATION_PS, EARLIEST_PS, SUCCESSOR, SEND_PATH, SEND_UNITS, TAKE_UNITS, GROUP, CLOSES = range(9)
ENTERS, LEAVES, FIRST_WRITE, STOP_WRITE, INPUTS, START_PS, END_PS, COMPUTE_PS, TASK_COLUMNS = range(9, 18)
HOME, HOME_STAGE, FIRST_SLOT, STOP_SLOT, KEPT, CLOSED, GROUP_COLUMNS = range(7)
POOL, STAGE, WRITE_PATH, READ_PATH, GRANTED, ARRIVED_PS, SERVE_PS, WAITING, SLOT_COLUMNS = range(9)
SLOT, UNITS, WRITER, AFTER, WRITE_COLUMNS = range(5)
NEXT, STOP, RUNNING, BLOCKED_PS, COMPUTED_PS, FETCHED_PS, DUE_PS, STALL_PS, TRY_PS, DELIVERED_PS, DIE_COLUMNS = range(
    11
)
USED, CAPACITY, PEAK, HOSTED, FIRST, LAST, POOL_COLUMNS = range(7)
SOURCE, TARGET, FIRST_LINK, STOP_LINK, HOPS, PATH_COLUMNS = range(6)
FREE_PS, CARRIED, BUSY_PS, LINK_COLUMNS = range(4)
UNITS_PER_BYTE, HOP_LATENCY_PS, STORE_AND_FORWARD, ONE_SEND_PER_DIE, INTEGER_NS = range(5)
OVERLAP, WINDOW, MOST_ITEMS, SETTINGS = range(5, 9)
EVENTS, ORDER, ITEMS, INSIDE, DONE, QUEUED, BYTE_HOPS, RECORDS, COUNTERS = range(9)
WHAT, WHICH, AMOUNT, HOSTING, AGENDA_COLUMNS = range(5)
TIME_PS, KEY, DATA, HEAP_COLUMNS = range(4)
# What is kept of each variant; a column for each wave follows.
TASKS_RUN, HOP_UNITS, FIRST_COMPLETION = range(3)
# Kinds of event, in the order in which one instant handles them; what an agenda asks for; kinds of trace record.
TASK_END, TRANSFER_ARRIVAL, SERVICE_STALL, TASK_START = range(4)
ACTIVATION, WRITE, FETCH, RELEASE = range(4)
TRANSFER, HOLD, MEMORY, STALL = range(4)
TRACE_COLUMNS = 8
# A key is kind, task and order of request, from the top: 2, 26 and 34 bits.
TASK_SHIFT, KIND_SHIFT = 34, 60
MOST_TASKS = 1 << 26
