"""The one error for a plan that cannot be used: what was found, what was expected, and the fix."""

from __future__ import annotations

from typing import NoReturn

AGAIN = "make the plan again: braid compile FILE -o FOLDER"


class Refusal(ValueError):
    """`code` is one of docs/plan.md's."""

    def __init__(self, code: str, place: str, found: str, expected: str, fix: str = AGAIN) -> None:
        super().__init__(f"{code}: {place}\n  found: {found}\n  expected: {expected}\n  fix: {fix}")
        self.code, self.place, self.found, self.expected, self.fix = code, place, found, expected, fix

    def __reduce__(self) -> tuple[type[Refusal], tuple[str, ...]]:
        return Refusal, (self.code, self.place, self.found, self.expected, self.fix)


def invalid(place: str, found: str, expected: str) -> NoReturn:
    raise Refusal("plan-invalid", place, found, expected)
