"""
One rank on fake GPUs: runs the plan of one of the package's programs twice, and compares its result with plain Python.
Values are small integers, whose sums are exact in float32 in every order. Prints how many elements it compared.
"""

import ctypes
import math
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
# gathered or scattered. Of programs with scales, whether rows have them (1) or tensors (0).
rows, inner, columns = int(sys.argv[3]), int(sys.argv[4]), list(map(int, sys.argv[5].split(",")))
by_rows, last, rowwise = sys.argv[6] == "1", sys.argv[7] == "1", sys.argv[8] == "1"
# 0 to 4 in float8_e4m3fn and in float8_e5m2; 0x80 is the sign.
CODES = {"float8_e4m3fn": (0x00, 0x38, 0x40, 0x44, 0x48), "float8_e5m2": (0x00, 0x3C, 0x40, 0x42, 0x44)}
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


def scale(rank: int, position: int, count: int) -> list[float]:
    """Of rows or columns."""
    return [2.0 ** (each % 3) for each in operand(rank, position, count if rowwise else 1)] * (1 if rowwise else count)


def scaled(rank: int, whole: Matrix, of_rows: list[float], position: int) -> Matrix:
    n = columns[position]
    of_columns = scale(rank, 2 + len(columns) + position, n)
    made = product(whole, right(rank, 1 + position, n))
    return [[p * q * each for q, each in zip(of_columns, row)] for p, row in zip(of_rows, made)]


def expected() -> list[Matrix]:
    """Of this rank's outputs."""
    if program == "all-gather-scaled-matmul":
        whole = sum([left(rank) for rank in range(size)], [])
        ranks = range(size) if rowwise else [own_rank] * size
        of_rows = sum([scale(rank, 1 + len(columns), rows) for rank in ranks], [])
        return [whole, *(scaled(own_rank, whole, of_rows, i) for i in range(len(columns)))]
    if program == "scaled-matmul-reduce-scatter":
        whole = total([scaled(rank, left(rank), scale(rank, 2, rows), 0) for rank in range(size)])
        return [whole[own_rank * (rows // size) : (own_rank + 1) * (rows // size)]]
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


def coded(values: list[int], dtype: str) -> list[int]:
    return [CODES[dtype][abs(each)] + (0x80 if each < 0 else 0) for each in values]


session = Session(Files(folder / "group", own_rank, size), own_rank)
runner = load_plan(session, folder)
memory = runner.own["memory"]
bound = [*memory["in"], *memory["out"], *memory["copied"]]
addresses = tuple(session.gpu.allocate(max(16, each["bytes"]), each["name"]) for each in bound)
for each, address in zip(bound, addresses):
    if each["role"] == "input":
        count = math.prod(each["shape"])
        values = operand(own_rank, each["position"], count)
        if each["dtype"] in CODES:
            ctypes.memmove(address, bytes(coded(values, each["dtype"])), count)
            continue
        if "scaled" in program:
            values = scale(own_rank, each["position"], count)
        ctypes.memmove(address, (ctypes.c_float * count)(*values), each["bytes"])
compared = 0
for _ in range(2):
    runner.run(addresses, runner._capturing)
    wait_until_idle(session.gpu, runner._capturing, 20)
    for each, address in zip(bound, addresses):
        if each["role"] == "output":
            flat = [value for row in expected()[each["position"]] for value in row]
            found = list((ctypes.c_float * (each["bytes"] // 4)).from_address(address))
            if each["dtype"] in CODES:
                found, flat = list((ctypes.c_uint8 * len(flat)).from_address(address)), coded(flat, each["dtype"])
            assert found == flat, f"rank {own_rank}, {each['name']}: {found[:8]}, expected {flat[:8]}"
            compared += len(flat)
            ctypes.memset(address, 0xEE, each["bytes"])
    # Nobody overwrites an output that a peer still reads.
    session.group.all_gather(b"")
print(compared)
sys.stdout.flush()
os._exit(0)
