"""The kernel of session windows: which session takes each item.

Items come in the order in which they become visible: those on time by their time, late ones with the watermark of
their arrival, equal ones as they arrived. The sessions are those of the order of arrival: an item on time extends only
sessions that end no earlier than its time, and to a late item that is visible before these are open anyway.

In this order at most two sessions of a partition can take items. One is the newest. The other is the former one, under
`[)` and while it ends at the instant that is reached: it takes an item of this time, but no late one.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from panewise.kernels import Int64Array, helper, kernel

#: The partition of each session, and the times of its first and last item.
Sessions: TypeAlias = tuple[Int64Array, Int64Array, Int64Array]


@kernel
def session_numbers(
    partitions: Int64Array, times: Int64Array, visible: Int64Array, shift: int, gap: int, size: int, known: Sessions
) -> tuple[Int64Array, Int64Array, Sessions]:
    """The session of each item, -1 where it came too late for any; new numbers of the known sessions; all sessions.

    Items that are late are visible later than `shift` after their time. Partitions are below a size.
    """
    count = len(known[0])
    owners, firsts = np.empty(count + len(times), np.int64), np.empty(count + len(times), np.int64)
    lasts, merged = np.empty(count + len(times), np.int64), np.full(count + len(times), -1, np.int64)
    owners[:count], firsts[:count], lasts[:count] = known
    newest, former = _newest_sessions(known, size)
    numbers = np.full(len(times), -1, np.int64)
    for item in range(len(times)):
        time, owner = times[item], partitions[item]
        # A late item needs a session that ends no earlier than this.
        least = visible[item] if visible[item] > time + shift else time
        for session in (newest[owner], former[owner]):
            if session < 0 or time < firsts[session] - gap or lasts[session] + gap < least:
                continue
            whole = numbers[item]
            if whole < 0:
                numbers[item] = session
                firsts[session], lasts[session] = min(firsts[session], time), max(lasts[session], time)
            else:
                firsts[whole], lasts[whole] = min(firsts[whole], firsts[session]), max(lasts[whole], lasts[session])
                merged[session], former[owner] = whole, -1
        if numbers[item] < 0 and time + gap >= least:
            owners[count], firsts[count], lasts[count] = owner, time, time
            former[owner], newest[owner], numbers[item] = newest[owner], count, count
            count += 1
    fresh, left = _numbers_without_gaps(merged[:count])
    for session in range(count):
        if merged[session] < 0:
            to = fresh[session]
            owners[to], firsts[to], lasts[to] = owners[session], firsts[session], lasts[session]
    for item in range(len(times)):
        if numbers[item] >= 0:
            numbers[item] = fresh[numbers[item]]
    return numbers, fresh[: len(known[0])], (owners[:left], firsts[:left], lasts[:left])


@helper
def _newest_sessions(known: Sessions, size: int) -> tuple[Int64Array, Int64Array]:
    """For each partition the session that ends last, and the one that ends before; -1 where there is none."""
    owners, _, lasts = known
    newest, former = np.full(size, -1, np.int64), np.full(size, -1, np.int64)
    for session in range(len(owners)):
        owner = owners[session]
        if newest[owner] < 0 or lasts[session] >= lasts[newest[owner]]:
            former[owner], newest[owner] = newest[owner], session
        elif former[owner] < 0 or lasts[session] > lasts[former[owner]]:
            former[owner] = session
    return newest, former


@helper
def _numbers_without_gaps(merged: Int64Array) -> tuple[Int64Array, int]:
    """New numbers for sessions, of which some have become part of others; and how many are left."""
    fresh, left = np.empty(len(merged), np.int64), 0
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
