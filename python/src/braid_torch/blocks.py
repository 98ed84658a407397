"""Writes out the blocks of a rank's document: rows that stand there several times, and say in what they differ.

{"$times": 79, "$rows": [{"kind": "record", "event": {"$from": 9, "$step": 12}}]} is 79 rows. A number may also be
{"$each": [...]}, one for each copy, and a text {"$text": [...]}, of such numbers and of texts.
"""

from __future__ import annotations

from typing import Any

# Rows that the blocks of one list stand for.
MOST_ROWS = 2**21
# Whole numbers up to here are exact for every reader.
MOST = 2**53 - 1


def unfold_lists(document: Any) -> Any:
    """What is no block of the right form stays, for the schema to refuse."""
    if not isinstance(document, dict):
        return document
    lists = {name: _unfolded(value) for name, value in document.items()}
    memory = lists.get("memory")
    if isinstance(memory, dict):
        lists["memory"] = {name: _unfolded(value) for name, value in memory.items()}
    return lists


def _unfolded(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    count = 0
    rows: list[Any] = []
    for entry in value:
        times, own = _block(entry)
        count += times * len(own)
        if times == 0 or count > MOST_ROWS:
            rows.append(entry)
        else:
            rows.extend(_copy(row, time) for time in range(times) for row in own)
    return rows


def _block(entry: Any) -> tuple[int, list[Any]]:
    """How often which rows stand there; never, if the entry is no block."""
    times, rows = (entry.get("$times"), entry.get("$rows")) if isinstance(entry, dict) else (None, None)
    return (times, rows) if _is_whole(times) and times > 0 and isinstance(rows, list) else (0, [])


def _copy(value: Any, time: int) -> Any:
    if isinstance(value, list):
        return [_copy(each, time) for each in value]
    if not isinstance(value, dict):
        return value
    first, step, each, parts = (value.get(name) for name in ("$from", "$step", "$each", "$text"))
    if _is_whole(first) and _is_whole(step):
        return first + time * step
    if isinstance(each, list):
        return each[time] if time < len(each) else None
    if isinstance(parts, list):
        texts = [_copy(part, time) for part in parts]
        if all(isinstance(text, str) or _is_whole(text) for text in texts):
            return "".join(map(str, texts))
    return {name: _copy(member, time) for name, member in value.items()}


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MOST
