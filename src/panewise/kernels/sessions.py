"""The kernel of session windows: which session takes each item."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from panewise.kernels import Int64Array, helper, kernel

#: The partition of each session, and the times of its first and last item.
Sessions: TypeAlias = tuple[Int64Array, Int64Array, Int64Array]


@kernel
def session_numbers(
    partitions: Int64Array, times: Int64Array, needs: Int64Array, gap: int, size: int, known: Sessions
) -> tuple[Int64Array, Int64Array, Sessions]:
    """The session of each item, -1 where it came too late for any; new numbers of the known sessions; all sessions.

    Items are replayed one after the other. Each joins the sessions within the gap that end no earlier than it `needs`:
    than its time, or, if it is late, than the first instant that was not final. Partitions are below a size.
    """
    before, count = len(known[0]), len(known[0])
    owners, firsts = np.empty(before + len(times), np.int64), np.empty(before + len(times), np.int64)
    lasts, merged = np.empty(before + len(times), np.int64), np.full(before + len(times), -1, np.int64)
    owners[:before], firsts[:before], lasts[:before] = known
    heads, links = np.full(size, -1, np.int64), np.empty(before + len(times), np.int64)
    for session in range(before):
        links[session], heads[owners[session]] = heads[owners[session]], session
    needed = _least_to_come(needs)
    numbers = np.empty(len(times), np.int64)
    for item in range(len(times)):
        time, owner = times[item], partitions[item]
        heads[owner], whole = _join(time, needs[item], needed[item], gap, heads[owner], links, firsts, lasts, merged)
        if whole < 0 and time + gap >= needs[item]:
            owners[count], firsts[count], lasts[count] = owner, time, time
            links[count], heads[owner], whole = heads[owner], count, count
            count += 1
        numbers[item] = whole
    fresh, left = _numbers_without_gaps(merged[:count])
    for session in range(count):
        if merged[session] < 0:
            to = fresh[session]
            owners[to], firsts[to], lasts[to] = owners[session], firsts[session], lasts[session]
    return fresh[numbers], fresh[:before], (owners[:left], firsts[:left], lasts[:left])


@helper
def _join(
    time: int,
    need: int,
    needed: int,
    gap: int,
    head: int,
    links: Int64Array,
    firsts: Int64Array,
    lasts: Int64Array,
    merged: Int64Array,
) -> tuple[int, int]:
    """Join an item and the sessions that take it, of a chain, the newest first; the head of the chain and the session.

    Merged sessions, and those that end before all that is `needed` from now on, leave the chain, which stays short.
    """
    whole, newer, session = -1, -1, head
    while session >= 0:
        older, end = links[session], lasts[session] + gap
        if firsts[session] - gap <= time and end >= need:
            if whole < 0:
                whole = session
            else:
                merged[session] = whole
            firsts[whole] = min(firsts[whole], firsts[session], time)
            lasts[whole] = max(lasts[whole], lasts[session], time)
        if end >= needed and merged[session] < 0:
            newer = session
        elif newer >= 0:
            links[newer] = older
        else:
            head = older
        session = older
    return head, whole


@helper
def _least_to_come(needs: Int64Array) -> Int64Array:
    """The least that an item or one after it needs."""
    least = needs.copy()
    for item in range(len(needs) - 2, -1, -1):
        least[item] = min(least[item], least[item + 1])
    return least


@helper
def _numbers_without_gaps(merged: Int64Array) -> tuple[Int64Array, int]:
    """New numbers for sessions, of which some have become part of others, and -1 as the last; and how many are left."""
    fresh, left = np.full(len(merged) + 1, -1, np.int64), 0
    for session in range(len(merged)):
        if merged[session] < 0:
            fresh[session] = left
            left += 1
    for session in range(len(merged)):
        whole = session
        while merged[whole] >= 0:
            whole = merged[whole]
        fresh[session] = fresh[whole]
    return fresh, left
