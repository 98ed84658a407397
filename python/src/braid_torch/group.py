"""The processes that run a plan together, one for each rank, and how they agree before anything waits on a GPU."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Protocol, TypeVar

from .refusal import Refusal

T = TypeVar("T")


class Group(Protocol):
    """All of one host. `all_gather` raises, and does not wait for ever, if a rank does not come."""

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def all_gather(self, data: bytes) -> list[bytes]:
        """What every rank gave, by rank. All ranks call it together."""
        ...


class Solo:
    """The group of one process."""

    rank, size = 0, 1

    def all_gather(self, data: bytes) -> list[bytes]:
        return [data]


def agree(group: Group, what: str, work: Callable[[], T]) -> T:
    """The result of `work`, which does not communicate. If it raises on a rank, every rank raises."""
    result: T | None = None
    failure: Exception | None = None
    try:
        result = work()
    except Exception as error:
        failure = error
    said = b"" if failure is None else pickle.dumps(failure if isinstance(failure, Refusal) else str(failure))
    answers = group.all_gather(said)
    if failure is not None:
        raise failure
    for rank, answer in enumerate(answers):
        if answer:
            other = pickle.loads(answer)
            if isinstance(other, Refusal):
                raise Refusal(other.code, f"rank {rank}: {other.place}", other.found, other.expected, other.fix)
            raise RuntimeError(f"rank {rank} failed when {what}: {other}")
    return result  # type: ignore[return-value]


def same(group: Group, what: str, own: str, fix: str) -> None:
    """Raises Refusal on every rank unless all give the same text."""
    texts = [each.decode() for each in group.all_gather(own.encode())]
    other = next((rank for rank, text in enumerate(texts) if text != texts[0]), None)
    if other is not None:
        found = f"rank 0: {texts[0]}; rank {other}: {texts[other]}"
        raise Refusal("program-differs", what, found, "the same on all ranks", fix)
