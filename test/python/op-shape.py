"""
One rank on fake GPUs: runs the plan of one of the package's programs twice, and compares its result with plain Python.
Values are small integers, whose sums are exact in float32 in every order. Prints how many elements it compared.
"""

import ctypes
import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2] / "python/src"), str(Path(__file__).parent)]

from braid_torch.cuda.graphs import wait_until_idle  # noqa: E402
from braid_torch.run import load_plan  # noqa: E402
from braid_torch.session import Session  # noqa: E402
from files_group import Files  # noqa: E402

Matrix = list[list[int]]

folder, program = Path(sys.argv[1]), sys.argv[2]
# Of A on one rank the rows and K, the columns of each weight, whether a weight is [K, N], and whether the last axis is
# gathered or scattered.
rows, inner, columns = int(sys.argv[3]), int(sys.argv[4]), list(map(int, sys.argv[5].split(",")))
by_rows, last = sys.argv[6] == "1", sys.argv[7] == "1"
own_rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def operand(rank: int, position: int, count: int) -> list[int]:
    return [(rank * 7 + position * 3 + i * 5 + i // 11) % 9 - 4 for i in range(count)]


def left(rank: int) -> Matrix:
    return by_row(operand(rank, 0, rows * inner), inner)


def right(rank: int, position: int, n: int) -> Matrix:
    """[K, N]."""
    height = inner * size if last and program == "all-gather-matmul" else inner
    values = operand(rank, position, height * n)
    return by_row(values, n) if by_rows else [list(each) for each in zip(*by_row(values, height))]


def by_row(values: list[int], width: int) -> Matrix:
    return [values[i : i + width] for i in range(0, len(values), width)]


def product(a: Matrix, b: Matrix) -> Matrix:
    turned = list(zip(*b))
    return [[sum(x * y for x, y in zip(row, column)) for column in turned] for row in a]


def total(matrices: list[Matrix]) -> Matrix:
    return [[sum(each) for each in zip(*rows)] for rows in zip(*matrices)]


def expected() -> list[Matrix]:
    """Of this rank's outputs."""
    if program == "all-gather-matmul":
        parts = [left(rank) for rank in range(size)]
        gathered = [sum(rows, []) for rows in zip(*parts)] if last else sum(parts, [])
        return [product(gathered, right(own_rank, 1 + i, n)) for i, n in enumerate(columns)]
    whole = total([product(left(rank), right(rank, 1, columns[0])) for rank in range(size)])
    if last:
        share = columns[0] // size
        return [[row[own_rank * share : (own_rank + 1) * share] for row in whole]]
    share = rows // size
    return [whole if program == "matmul-all-reduce" else whole[own_rank * share : (own_rank + 1) * share]]


session = Session(Files(folder / "group", own_rank, size), own_rank)
runner = load_plan(session, folder)
memory = runner.own["memory"]
bound = [*memory["in"], *memory["out"], *memory["copied"]]
addresses = tuple(session.gpu.allocate(max(16, each["bytes"]), each["name"]) for each in bound)
for each, address in zip(bound, addresses):
    if each["role"] == "input":
        values = operand(own_rank, each["position"], each["bytes"] // 4)
        ctypes.memmove(address, (ctypes.c_float * len(values))(*values), each["bytes"])
compared = 0
for _ in range(2):
    runner.run(addresses, runner._capturing)
    wait_until_idle(session.gpu, runner._capturing, 20)
    for each, address in zip(bound, addresses):
        if each["role"] == "output":
            flat = [value for row in expected()[each["position"]] for value in row]
            found = list((ctypes.c_float * (each["bytes"] // 4)).from_address(address))
            assert found == flat, f"rank {own_rank}, {each['name']}: {found[:8]}, expected {flat[:8]}"
            compared += len(flat)
            ctypes.memset(address, 0xEE, each["bytes"])
    # Nobody overwrites an output that a peer still reads.
    session.group.all_gather(b"")
print(compared)
sys.stdout.flush()
os._exit(0)
