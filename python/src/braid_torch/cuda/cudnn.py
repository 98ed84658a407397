"""Descriptors of cuDNN's graph API, with the numbers of its enumerations, under their names in cudnn_graph.h."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

from . import driver as cu
from .libraries import load

PROTOTYPES: dict[str, tuple[Any, ...]] = {
    "cudnnCreate": (cu.OUT64,),
    "cudnnSetStream": (cu.U64, cu.U64),
    "cudnnBackendCreateDescriptor": (cu.I32, cu.OUT64),
    "cudnnBackendDestroyDescriptor": (cu.U64,),
    "cudnnBackendSetAttribute": (cu.U64, cu.I32, cu.I32, ctypes.c_int64, cu.BYTES),
    "cudnnBackendGetAttribute": (cu.U64, cu.I32, cu.I32, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64), cu.BYTES),
    "cudnnBackendFinalize": (cu.U64,),
    "cudnnBackendExecute": (cu.U64, cu.U64, cu.U64),
}

# cudnnBackendDescriptorType_t, without CUDNN_BACKEND_ and _DESCRIPTOR.
DESCRIPTORS = {
    "POINTWISE": 0, "ENGINECFG": 3, "ENGINEHEUR": 4, "EXECUTION_PLAN": 5, "OPERATION_POINTWISE": 13,
    "OPERATIONGRAPH": 15, "VARIANT_PACK": 16, "TENSOR": 17, "MATMUL": 18, "OPERATION_MATMUL": 19, "REDUCTION": 21,
    "OPERATION_REDUCTION": 22, "OPERATION_RESHAPE": 31,
}  # fmt: skip

# cudnnBackendAttributeName_t, without CUDNN_ATTR_.
ATTRIBUTES = {
    "POINTWISE_MODE": 0, "POINTWISE_MATH_PREC": 1, "POINTWISE_AXIS": 9, "ENGINEHEUR_MODE": 200,
    "ENGINEHEUR_OPERATION_GRAPH": 201, "ENGINEHEUR_RESULTS": 202, "EXECUTION_PLAN_ENGINE_CONFIG": 401,
    "EXECUTION_PLAN_WORKSPACE_SIZE": 402, "OPERATION_POINTWISE_PW_DESCRIPTOR": 750, "OPERATION_POINTWISE_XDESC": 751,
    "OPERATION_POINTWISE_BDESC": 752, "OPERATION_POINTWISE_YDESC": 753, "OPERATION_POINTWISE_ALPHA1": 754,
    "OPERATION_POINTWISE_ALPHA2": 755, "OPERATION_POINTWISE_TDESC": 758, "OPERATIONGRAPH_HANDLE": 800,
    "OPERATIONGRAPH_OPS": 801, "TENSOR_BYTE_ALIGNMENT": 900, "TENSOR_DATA_TYPE": 901, "TENSOR_DIMENSIONS": 902,
    "TENSOR_STRIDES": 903, "TENSOR_UNIQUE_ID": 906, "TENSOR_IS_VIRTUAL": 907, "TENSOR_IS_BY_VALUE": 908,
    "VARIANT_PACK_UNIQUE_IDS": 1000, "VARIANT_PACK_DATA_POINTERS": 1001, "VARIANT_PACK_WORKSPACE": 1003,
    "MATMUL_COMP_TYPE": 1500, "OPERATION_MATMUL_ADESC": 1520, "OPERATION_MATMUL_BDESC": 1521,
    "OPERATION_MATMUL_CDESC": 1522, "OPERATION_MATMUL_DESC": 1523, "REDUCTION_OPERATOR": 1600,
    "REDUCTION_COMP_TYPE": 1601, "OPERATION_REDUCTION_XDESC": 1610, "OPERATION_REDUCTION_YDESC": 1611,
    "OPERATION_REDUCTION_DESC": 1612, "OPERATION_RESHAPE_XDESC": 2200, "OPERATION_RESHAPE_YDESC": 2201,
}  # fmt: skip

# cudnnBackendAttributeType_t, without CUDNN_TYPE_, and how C reads the elements.
KINDS: dict[str, tuple[int, Any]] = {
    "HANDLE": (0, ctypes.c_int64),
    "DATA_TYPE": (1, ctypes.c_int32),
    "BOOLEAN": (2, ctypes.c_int8),
    "INT64": (3, ctypes.c_int64),
    "FLOAT": (4, ctypes.c_float),
    "VOID_PTR": (6, ctypes.c_int64),
    "HEUR_MODE": (8, ctypes.c_int32),
    "POINTWISE_MODE": (14, ctypes.c_int32),
    "BACKEND_DESCRIPTOR": (15, ctypes.c_int64),
    "REDUCTION_OPERATOR_TYPE": (18, ctypes.c_int32),
}

DATA_TYPES = {"float": 0, "half": 2, "int32": 4, "bfloat16": 9, "bool": 11}
POINTWISE_MODES = {
    "ADD": 0, "MUL": 1, "DIV": 6, "SUB": 9, "EXP": 13, "LOG": 15, "CMP_GT": 302, "CMP_GE": 303,
    "GEN_INDEX": 501, "BINARY_SELECT": 601,
}  # fmt: skip
REDUCTION_OPERATORS = {"ADD": 0, "MAX": 3}
HEUR_MODE_A = 3

# Name, kind and elements.
Attribute = tuple[str, str, list[Any]]


class Refused(Exception):
    """A call that cuDNN refused: `call` says what for."""

    def __init__(self, call: str, status: int, text: str) -> None:
        super().__init__(f"{call} returned {text} ({status})")
        self.call, self.status, self.text = call, status, text


@functools.cache
def cudnn() -> Any:
    # cuDNN asks the loader for NVRTC by name when it compiles a kernel: one that is loaded already is found.
    load("NVRTC")
    library = load("cuDNN")
    for name, types in PROTOTYPES.items():
        function = getattr(library, name)
        function.argtypes, function.restype = types, cu.I32
    library.cudnnGetErrorString.argtypes, library.cudnnGetErrorString.restype = (cu.I32,), ctypes.c_char_p
    return library


def check(status: int, call: str) -> None:
    """Raises Refused."""
    if status:
        raise Refused(call, status, cudnn().cudnnGetErrorString(status).decode())


def create(kind: str, what: str) -> int:
    made = cu.U64()
    status = cudnn().cudnnBackendCreateDescriptor(DESCRIPTORS[kind], ctypes.byref(made))
    check(status, f"cudnnBackendCreateDescriptor({what})")
    return made.value


def make(kind: str, what: str, *attributes: Attribute) -> int:
    """A finalized descriptor. `what` names it in messages. Raises Refused."""
    descriptor = create(kind, what)
    for name, type_name, values in attributes:
        number, element = KINDS[type_name]
        block = (element * len(values))(*values)
        status = cudnn().cudnnBackendSetAttribute(descriptor, ATTRIBUTES[name], number, len(values), block)
        check(status, f"cudnnBackendSetAttribute({what}, {name})")
    check(cudnn().cudnnBackendFinalize(descriptor), f"cudnnBackendFinalize({what})")
    return descriptor


def destroy(descriptor: int) -> None:
    cudnn().cudnnBackendDestroyDescriptor(descriptor)


def values_of(descriptor: int, name: str, kind: str, given: list[int]) -> list[int]:
    """The elements of an attribute. The library fills in descriptors that are `given`."""
    block, count = (ctypes.c_int64 * len(given))(*given), ctypes.c_int64()
    arguments = (descriptor, ATTRIBUTES[name], KINDS[kind][0], len(given), ctypes.byref(count), block)
    check(cudnn().cudnnBackendGetAttribute(*arguments), f"cudnnBackendGetAttribute({name})")
    return list(block[: count.value])
