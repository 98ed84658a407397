"""The one error for a plan that cannot be used: what was found, what was expected, and the fix."""

from __future__ import annotations

import re
from typing import NoReturn

AGAIN = "make the plan again: braid compile FILE -o FOLDER"


class Refusal(ValueError):
    """`code` is one of docs/plan.md's."""

    def __init__(self, code: str, place: str, found: str, expected: str, fix: str = AGAIN) -> None:
        parts = f"{code}: {place}", f"  found: {found}", f"  expected: {expected}", f"  fix: {fix}"
        super().__init__("\n".join(map(printable, parts)))
        self.code, self.place, self.found, self.expected, self.fix = code, place, found, expected, fix

    def __reduce__(self) -> tuple[type[Refusal], tuple[str, ...]]:
        return Refusal, (self.code, self.place, self.found, self.expected, self.fix)


def printable(text: str) -> str:
    """On one line. A plan's control characters would act on the terminal, and marks of direction reorder the text."""
    controls = r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
    return re.sub(controls, lambda each: f"\\u{ord(each[0]):04x}", text)


def invalid(place: str, found: str, expected: str) -> NoReturn:
    raise Refusal("plan-invalid", place, found, expected)
