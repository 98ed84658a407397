"""
Runs a plan on this rank: by calls one after the other when it sees a set of addresses for the first time, and by a
graph of them from the second time on. Runs are queued on the caller's stream; nothing here waits for the GPU.
"""

from __future__ import annotations

import ctypes
import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .bind import Action, Binding, bind, copy_action, is_bound_by_run
from .cuda.gemms import WORKSPACE_BYTES
from .cuda.graphs import captured, wait_until_idle
from .entries import Addresses, Entry
from .group import agree, same
from .places import GATE_BYTES, WORD_BYTES, Places, Shared
from .plan import Plan, read_plan
from .refusal import Refusal
from .session import Session

Json = dict[str, Any]

# Seconds until a stream that still waits for the same peer counts as stuck: as long as PyTorch's process groups wait.
# A rank that saves a checkpoint or compiles keeps the others waiting for minutes.
TIMEOUT = 600.0
ZEROING_SECONDS = 30.0


@dataclass
class Counts:
    runs: int = 0
    graphs: int = 0
    one_by_one: int = 0
    captured: int = 0
    refused: int = 0


# Set to find the operation that fails: each is waited for, and no graphs are used.
SLOWLY = os.environ.get("BRAID_SYNC", "") not in ("", "0")


class Runner:
    """Collective: all ranks make it together. Raises Refusal on all of them."""

    def __init__(self, session: Session, plan: Plan, folder: str, timeout: float = TIMEOUT) -> None:
        self.session, self.plan, self.folder, self.counts = session, plan, folder, Counts()
        group, gpu = session.group, session.gpu
        agree(group, "checking the plan", self._check)
        same(group, folder, plan.hash, "give all ranks the same plan: braid compile is needed once")
        self.own: Json = plan.ranks[group.rank]
        streams = self.own["streams"]
        progress = agree(group, "allocating host memory", lambda: gpu.pinned(max(64, 4 * len(streams))))
        memory = self.own["memory"]
        symmetric, words = session.symmetric(memory["symmetricBytes"]), session.words(memory["words"])
        self._binding = agree(group, "preparing the plan", lambda: self._prepare(symmetric, words, progress))
        self._zero_words()
        self._entries = session.entries.of_plan()
        self._spare: Addresses | None = None
        self._launch = gpu.raw.cuGraphLaunch
        session.watch.add(self, progress, timeout)

    def _check(self) -> None:
        group, gpu, document = self.session.group, self.session.gpu, self.plan.document
        self.session.require_same_process()
        if group.size != document["world"]:
            fix = f"braid compile FILE --devices {group.size} -o FOLDER"
            raise Refusal(
                "plan-mismatch", self.folder, f"a group of {group.size} processes", f"{document['world']}", fix
            )
        target = document["target"]
        if gpu.capability < target["capability"] or gpu.multiprocessors < target["multiprocessors"]:
            found = f"{gpu.name}, compute capability {gpu.capability / 10}, {gpu.multiprocessors} multiprocessors"
            expected = f"at least {target['capability'] / 10} and {target['multiprocessors']}"
            fix = f"braid compile FILE -o FOLDER --gpu capability={gpu.capability},multiprocessors={gpu.multiprocessors}"
            raise Refusal("plan-mismatch", self.folder, found, expected, fix)

    def _prepare(self, symmetric: list[int], words: list[int], progress: int) -> Binding:
        gpu, own, session = self.session.gpu, self.own, self.session
        # Number 0 stands for the caller's stream, and is captured in its place.
        self._capturing = gpu.stream(own["streams"][0]["priority"])
        self._streams = [0, *(gpu.stream(each["priority"]) for each in own["streams"][1:])]
        events = [gpu.event() for _ in range(own["events"])]
        kernels = [self._kernel(number) for number in own["kernels"]]
        memory = own["memory"]
        scratch = [session.block(f"scratch of stream {i}", count) for i, count in enumerate(memory["scratchBytes"])]
        spaces = [session.block(f"workspace of stream {i}", count) for i, count in enumerate(self._workspace_bytes())]
        temporary = session.block("temporaries", memory["temporaryBytes"])
        self._gates = gpu.allocate(GATE_BYTES * memory["gates"], "gates of kernels")
        self._places = Places(own, Shared(symmetric, words, temporary, scratch, spaces), self._gates, progress)
        none: dict[str, tuple[int, ...]] = {}
        gemms, attentions = (lambda: session.gemms), (lambda: session.attentions)
        binding = Binding(gpu, own, self._places, events, kernels, gemms, attentions, none)
        self._always = [None if is_bound_by_run(op) else bind(op, binding) for op in own["ops"]]
        return binding

    def _kernel(self, number: int) -> int:
        kernel = self.plan.document["kernels"][number]
        return self.session.kernels.function(self.plan.kernels[number], kernel["entry"], tuple(kernel["options"]))

    def _workspace_bytes(self) -> list[int]:
        """By stream: what cuBLASLt needs, or cuDNN, whose plans know."""
        counts = [max(count, WORKSPACE_BYTES) if count else 0 for count in self.own["memory"]["workspaceBytes"]]
        for op in self.own["ops"]:
            if op["kind"] == "attention":
                graph = self.own["attentions"][op["attention"]]["graph"]
                counts[op["stream"]] = max(counts[op["stream"]], self.session.attentions.workspace_bytes(graph))
        return counts

    def _zero_words(self) -> None:
        gpu, memory = self.session.gpu, self.own["memory"]
        places = [
            (self._places.words, WORD_BYTES * memory["words"][self.own["rank"]]),
            (self._gates, GATE_BYTES * memory["gates"]),
        ]

        def zero() -> None:
            for address, count in places:
                if count:
                    gpu.call("cuMemsetD8Async", address, 0, count, self._capturing)
            wait_until_idle(gpu, self._capturing, ZEROING_SECONDS)

        agree(self.session.group, "zeroing the words of signals", zero)
        self.session.group.all_gather(b"")

    def run(self, addresses: Addresses, stream: int, capturing: bool = False) -> None:
        """
        Queues one run on the caller's stream. `addresses`: of `memory.in`, `memory.out`, then `memory.copied`, each a
        multiple of 16. `capturing`: the caller captures the stream into a graph of its own.
        """
        session = self.session
        with session.lock:
            session.gpu.make_current()
            if capturing:
                return self._issue_into_capture(addresses, stream)
            self._queue(addresses, stream)
            refused = session.refusals.news(session.calls)
            if refused is not None:
                self._peer_refused(*refused)

    def _queue(self, addresses: Addresses, stream: int) -> None:
        session = self.session
        session.calls += 1
        if stream != session.last_stream:
            self._order_after_last(stream)
        self.counts.runs += 1
        entry = self._entries.get(addresses)
        if entry is None or SLOWLY:
            self._first(addresses, stream)
        else:
            if not entry.graph:
                stand_in = self._capturing
                entry.graph = captured(session.gpu, stand_in, lambda: self._issue(entry.actions, stand_in))
            entry.used = session.calls
            self.counts.graphs += 1
            status = self._launch(entry.graph, stream)
            if status:
                session.gpu.check(status, "cuGraphLaunch")

    def refuse(self, reason: str, stream: int) -> None:
        """Takes part in a run with memory of its own, so that peers do not wait, and tells them why it is void."""
        session = self.session
        with session.lock:
            session.gpu.make_current()
            self.counts.refused += 1
            session.refusals.post(f"{self.folder}, call {self.counts.runs + 1}: {reason}", session.calls + 1)
            if self._spare is None:
                memory = self.own["memory"]
                bound = [*memory["in"], *memory["out"], *memory["copied"]]
                self._spare = tuple(session.gpu.allocate(each["bytes"], "a refused call") for each in bound)
            self._queue(self._spare, stream)

    def _peer_refused(self, call: int, refused: str) -> None:
        expected = "calls that every rank makes with tensors that fit"
        before = self.session.calls - call
        which = "this call" if before == 0 else f"the call {before} before this one"
        fix = f"the results of {which} are void on all ranks{'' if before == 0 else '; those of this call are not'}"
        raise Refusal("peer-refused", self.folder, refused, expected, fix)

    def _issue_into_capture(self, addresses: Addresses, stream: int) -> None:
        if self.counts.runs == 0:
            expected = "a call before the capture: the first one loads kernels"
            fix = "call the plan once, as warm-up, before torch.cuda.graph"
            raise Refusal("plan-mismatch", self.folder, "a first call inside a capture", expected, fix)
        self.counts.captured += 1
        with self.session.without_trials(bool(self.own["gemms"])):
            entry = self._bound(addresses)
        self._issue(entry.actions, stream)
        self.session.entries.release(entry)

    def _order_after_last(self, stream: int) -> None:
        """Two runs share memory and signals, so one follows the other also where their streams differ."""
        gpu, session = self.session.gpu, self.session
        if session.last_stream is not None and gpu.raw.cuEventRecord(session.between, session.last_stream) == 0:
            gpu.call("cuStreamWaitEvent", stream, session.between, 0)
        session.last_stream = stream

    def _first(self, addresses: Addresses, stream: int) -> None:
        entry, entries = self._bound(addresses), self.session.entries
        kept = entries.keep(self._entries, addresses, entry)
        self.counts.one_by_one += 1
        self._issue(entry.actions, stream)
        if not kept:
            entries.release(entry)

    def _issue(self, actions: list[Action], stream: int) -> None:
        streams = [stream, *self._streams[1:]]
        if SLOWLY:
            return self._issue_slowly(actions, streams)
        for action in actions:
            action(streams)

    def _issue_slowly(self, actions: list[Action], streams: list[int]) -> None:
        """Waits after each operation, and names the one that failed."""
        texts = [json.dumps(op) for op in self.own["ops"]]
        for number, action in enumerate(actions):
            action(streams)
            for stream in streams:
                status = self.session.gpu.raw.cuStreamSynchronize(ctypes.c_void_p(stream))
                if status:
                    known = f"operation {number} of {len(actions)}: {texts[min(number, len(texts) - 1)]}"
                    self.session.gpu.check(status, f"cuStreamSynchronize after {known}")

    def _bound(self, addresses: Addresses) -> Entry:
        memory, gpu = self.own["memory"], self.session.gpu
        ins, outs = len(memory["in"]), len(memory["out"])
        tensors = {"in": addresses[:ins], "out": addresses[ins : ins + outs]}
        binding = replace(self._binding, tensors=tensors)
        copied = list(zip(memory["copied"], addresses[ins + outs :]))

        def copies(role: str) -> list[Action]:
            own = [(each, address) for each, address in copied if each["bytes"] and role in _sides(each)]
            pairs = [(self._places.of(each["place"], tensors), address, each["bytes"]) for each, address in own]
            if role == "output":
                return [copy_action(gpu, address, place, count, 0) for place, address, count in pairs]
            return [copy_action(gpu, place, address, count, 0) for place, address, count in pairs]

        actions = copies("input")
        releases = []
        for op, always in zip(self.own["ops"], self._always):
            calls = bind(op, binding) if always is None else always
            actions += calls
            if always is None:
                releases += [call.release for call in calls if hasattr(call, "release")]
        return Entry([*actions, *copies("output")], self.session.calls, releases=releases)


def _sides(tensor: dict[str, Any]) -> tuple[str, ...]:
    return (tensor["role"], "output") if "output" in tensor else (tensor["role"],)


def load_plan(session: Session, folder: str | Path, timeout: float = TIMEOUT) -> Runner:
    """Collective: every rank reads the plan. Raises Refusal on all of them."""

    def read() -> Plan:
        try:
            return read_plan(folder)
        except OSError as error:
            expected = "a folder that braid compile has written, which every rank can read"
            raise Refusal("plan-invalid", str(folder), str(error), expected) from error

    return Runner(session, agree(session.group, "reading the plan", read), str(folder), timeout)
