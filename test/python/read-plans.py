"""Reads the plans in the folders of the folder that is named; prints what each holds, or its refusal, as JSON."""

import hashlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "python/src"))

from braid_torch import Refusal, read_plan  # noqa: E402


def account(folder: Path) -> dict[str, object]:
    try:
        plan = read_plan(folder)
    except Refusal as refusal:
        place = Path(refusal.place).relative_to(folder).as_posix()
        return {"refused": [refusal.code, place, refusal.found, refusal.expected], "fix": refusal.fix}
    return {
        "hash": plan.hash,
        "kernels": [hashlib.sha256(text.encode()).hexdigest() for text in plan.kernels],
        "documents": [
            hashlib.sha256(json.dumps(rank, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()
            for rank in plan.ranks
        ],
        "ranks": [[op["kind"] for op in rank["ops"]] for rank in plan.ranks],
    }


root = Path(sys.argv[1])
json.dump({folder.name: account(folder) for folder in sorted(root.iterdir())}, sys.stdout)
