"""
Finds runs that hang. A thread looks at the words that streams write before and after they wait for a peer; it calls
the driver only when it has to report, because a call from another thread can break a capture of PyTorch.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .run import Runner

Json = dict[str, Any]

PASSED = 0x8000_0000
# Looks for each time-out: a stream that waits at every one of them, while no new run is queued, does not move.
LOOKS = 50


class Watch:
    """One thread for each plan. `on_stuck` gets the lines of the report; by default they are printed, and it aborts."""

    def __init__(self, runner: Runner, progress: int, timeout: float) -> None:
        self._runner, self._timeout = runner, timeout
        self._words = (ctypes.c_uint32 * len(runner.own["streams"])).from_address(progress)
        self.on_stuck = abort
        if timeout > 0 and runner.session.group.size > 1:
            name = f"braid watch {runner.folder}"
            threading.Thread(target=self._look, name=name, daemon=True).start()

    def _look(self) -> None:
        since: dict[int, tuple[int, int, float]] = {}
        while True:
            time.sleep(self._timeout / LOOKS)
            now, runs = time.monotonic(), self._runner.counts.runs
            for stream, word in enumerate(self._words):
                known = since.get(stream)
                if word == 0 or word >= PASSED:
                    since.pop(stream, None)
                elif known is None or known[:2] != (word, runs):
                    since[stream] = (word, runs, now)
                elif now - known[2] >= self._timeout:
                    return self.on_stuck(self.report())

    def report(self) -> list[str]:
        """A line for each stream that waits for a peer."""
        own = self._runner.own
        lines = []
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
    print("braid: timed-out: a run does not end\n  " + "\n  ".join(lines), file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGABRT)
