"""
Finds runs that hang. A thread of the session looks at the words that streams write before and after they wait for a
peer. It makes no call of the driver: one from another thread can break a capture of PyTorch.
"""

from __future__ import annotations

import ctypes
import os
import random
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from .refusal import printable

if TYPE_CHECKING:
    from .run import Runner

Json = dict[str, Any]

PASSED = 0x8000_0000
# Looks for each time-out: a stream that waits at every one of them, while no new run is queued, does not move.
LOOKS = 50
# Between looks, in seconds.
LONGEST, SHORTEST = 1.0, 0.02
# Where graphs of PyTorch run a plan, nothing counts its runs. If a rank waits at one command for 99 % of each of them,
# looks once a second would find it there a hundred times in a row within minutes.
OF_CAPTURED = 0.05


class Watch:
    """Of all plans of a session. `on_stuck` gets the lines of the report; by default it prints them and aborts."""

    def __init__(self) -> None:
        self.on_stuck = abort
        self._watched: list[_Watched] = []

    def add(self, runner: Runner, progress: int, timeout: float) -> None:
        """`progress`: the address of the words. `timeout` in seconds; 0 for never."""
        if timeout <= 0 or runner.session.group.size == 1:
            return
        self._watched.append(_Watched(runner, progress, timeout))
        if len(self._watched) == 1:
            threading.Thread(target=self._look, name="braid watch", daemon=True).start()

    def _look(self) -> None:
        while True:
            time.sleep(self.pause())
            for each in tuple(self._watched):
                if each.is_stuck(time.monotonic()):
                    return self.on_stuck(each.report())


    def pause(self) -> float:
        """Until the next look: of random length, so that looks do not keep time with a loop."""
        least = min(each.timeout for each in self._watched)
        most = OF_CAPTURED if any(each.is_captured() for each in self._watched) else LONGEST
        return min(most, max(SHORTEST, least / LOOKS)) * random.uniform(0.5, 1)


class _Watched:
    def __init__(self, runner: Runner, progress: int, timeout: float) -> None:
        self._runner, self.timeout = runner, timeout
        self._words = (ctypes.c_uint32 * len(runner.own["streams"])).from_address(progress)
        # By stream: its word, the runs that were queued then, and since when both are the same.
        self._since: dict[int, tuple[int, int, float]] = {}

    def is_captured(self) -> bool:
        return self._runner.counts.captured > 0

    def is_stuck(self, now: float) -> bool:
        runs = self._runner.counts.runs
        for stream, word in enumerate(self._words):
            known = self._since.get(stream)
            if word == 0 or word >= PASSED:
                self._since.pop(stream, None)
            elif known is None or known[:2] != (word, runs):
                self._since[stream] = (word, runs, now)
            elif now - known[2] >= self.timeout:
                return True
        return False

    def report(self) -> list[str]:
        """The plan, and a line for each stream that waits for a peer."""
        own = self._runner.own
        lines = [f"{self._runner.folder}, {self.timeout:g} s after its last call"]
        for stream, word in enumerate(self._words):
            if word == 0 or word >= PASSED:
                continue
            command = own["commands"][word - 1]
            run = next((run for run in own["waitRuns"] if run[0]["command"] == word - 1), [{"command": word - 1}])
            ranks = sorted({rank for wait in run for rank, _ in own["commands"][wait["command"]].get("needs", ())})
            waits = f"; it waits for rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}" if ranks else ""
            statement = own["statements"][command["statement"]]
            lines.append(
                f"rank {own['rank']}, {own['streams'][stream]['name']}: reached command {word - 1}, "
                f"{command['kind']} {command['details']}{waits} ({statement})"
            )
        return lines


def abort(lines: list[str]) -> None:
    """Streams that wait never end, so the process cannot go on."""
    text = "\n  ".join(["braid: timed-out: a run does not end", *map(printable, lines)])
    print(text, file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGABRT)
