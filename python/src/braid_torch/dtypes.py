"""The dtypes of plans: bytes, the name in PyTorch, and cudaDataType. A test compares them with Braid's own table."""

from __future__ import annotations

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
