"""Reads a plan. All that a run relies on is checked here: format, version, verdict, hashes, forms and addresses."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from .blocks import unfold_lists
from .check_rank import check_rank, check_signals
from .form import Mismatch, check
from .refusal import Refusal, invalid

FORMAT = "braid-plan"
VERSION = 2
# Of JSON. Plans have less than 20.
DEPTH = 100

Json = dict[str, Any]


@dataclass(frozen=True)
class Plan:
    document: Json
    # SHA-256 of plan.json, which has the hashes of all other files.
    hash: str
    # By rank.
    ranks: tuple[Json, ...]
    # Texts of CUDA C++, in the order of the document's kernels.
    kernels: tuple[str, ...]


def read_plan(folder: str | Path) -> Plan:
    """Raises Refusal. A file that cannot be read raises OSError."""
    root = Path(folder)
    content = (root / "plan.json").read_bytes()
    place = f"{root}/plan.json"
    document = _document(place, _parsed(place, content))
    texts: dict[str, bytes] = {}
    for file, expected in document["files"].items():
        if not re.fullmatch(r"rank-[0-9]+\.json|kernels/k[0-9]+\.cu", file):
            invalid(place, f"it names the file {file}", "files of the plan only: rank-R.json, kernels/kN.cu")
        texts[file] = (root / file).read_bytes()
        found = hashlib.sha256(texts[file]).hexdigest()
        if found != expected:
            invalid(f"{root}/{file}", f"SHA-256 {found}", f"{expected}, as plan.json says")

    def text_of(file: str) -> bytes:
        if file not in texts:
            invalid(place, f"no hash of {file}", "a hash of every file")
        return texts[file]

    kernels = tuple(_text(f"{root}/{kernel['file']}", text_of(kernel["file"])) for kernel in document["kernels"])
    ranks = []
    for rank in range(document["world"]):
        own_place = f"{root}/rank-{rank}.json"
        own = unfold_lists(_parsed(own_place, text_of(f"rank-{rank}.json")))
        _check_form(own_place, own, "plan-rank")
        check_rank(own, document, rank, _refuse_at(own_place))
        ranks.append(own)
    check_signals(ranks, _refuse_at(place))
    return Plan(document, hashlib.sha256(content).hexdigest(), tuple(ranks), kernels)


def _refuse_at(place: str) -> Callable[[str, str], None]:
    return functools.partial(invalid, place)


def _document(place: str, value: Any) -> Json:
    """The version and the verdict are looked at before the form: another version may have another form."""
    known = value if isinstance(value, dict) else {}
    version = known.get("version")
    if known.get("format") != FORMAT or not isinstance(version, (int, float)) or isinstance(version, bool):
        invalid(place, "no plan", f'"format": "{FORMAT}" and a version')
    if version != VERSION:
        fix = "make it again: braid compile FILE -o FOLDER, with the version of Braid that this package belongs to"
        raise Refusal("plan-version", place, f"version {version}", f"version {VERSION}", fix)
    verified = known.get("verified")
    if not isinstance(verified, dict) or verified.get("ok") is not True:
        fix = "make it again: braid compile refuses programs with findings"
        expected = "a plan that the verifier has proved"
        raise Refusal("plan-unverified", place, "no verified.ok that is true", expected, fix)
    _check_form(place, known, "plan")
    return known


def _check_form(place: str, value: Any, name: str) -> None:
    schema = _schema(name)
    try:
        check(value, schema, schema)
    except Mismatch as mismatch:
        where = ".".join(mismatch.path) or "the document"
        invalid(place, f"{where}: {mismatch.found}", mismatch.expected)


@functools.cache
def _schema(name: str) -> Any:
    return json.loads((resources.files(__package__) / "schemas" / f"{name}.schema.json").read_text())


def _parsed(place: str, content: bytes) -> Any:
    text = _text(place, content)
    try:
        _require_shallow(text)
        return json.loads(text, parse_float=_number, parse_constant=_no_number, object_pairs_hook=_members)
    except ValueError as error:
        invalid(place, str(error), "a JSON document")


def _text(place: str, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        invalid(place, "bytes that are no UTF-8", "a text in UTF-8")


def _require_shallow(text: str) -> None:
    """Before it is parsed: the parser ends in a RecursionError, depending on who calls it."""
    depth = 0
    for bracket in re.findall(r"[\[\]{}]", re.sub(r'"(?:[^"\\]|\\.)*"', "", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > DEPTH:
            raise ValueError(f"it is nested more than {DEPTH} deep")


def _members(pairs: list[tuple[str, Any]]) -> Json:
    """A key that is given twice is an error."""
    members = dict(pairs)
    if len(members) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {json.dumps(next(k for k in keys if keys.count(k) > 1))} is given twice")
    return members


def _number(text: str) -> int | float:
    """1e6 is an integer, in JSON as in its schemas."""
    number = float(text)
    return int(number) if number.is_integer() else number


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is no JSON")
