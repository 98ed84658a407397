"""The dtypes of plans: bytes, the name in PyTorch, and cudaDataType. A test compares them with Braid's own table."""

from __future__ import annotations

from typing import Any

DTYPES = {
    "double": (8, "float64", 1),
    "float": (4, "float32", 0),
    "half": (2, "float16", 2),
    "bfloat16": (2, "bfloat16", 14),
    "float8_e4m3fn": (1, "float8_e4m3fn", 28),
    "float8_e5m2": (1, "float8_e5m2", 29),
    "int": (4, "int32", 10),
    "int64": (8, "int64", 24),
    "bool": (1, "bool", 8),
}
DTYPE_BYTES = {name: size for name, (size, _, _) in DTYPES.items()}

# Elements of k, and of rows or columns, that one scale of a block of 8-bit floats is of.
SCALED_BLOCK = 128


def scale_elements(layout: dict[str, Any], side: str) -> int:
    """Of the left or right operand of a scaled GEMM, as src/backends/cuda/matmul/gemm-layout.ts counts them."""
    scaled = layout["scaled"]
    if not scaled["vectors"]:
        return 1
    count: int = layout["result"]["rows" if side == "left" else "columns"]
    if "blocks" not in scaled:
        return count
    rows, of_k = scaled["blocks"][side], layout["left"]["rows"] // SCALED_BLOCK
    scales = -(-count // rows)
    in_line, lines = (scales, of_k) if rows == 1 else (of_k, scales)
    return (lines - 1) * -(-in_line // 4) * 4 + in_line
