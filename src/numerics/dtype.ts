/**
 * The dtypes of Braid, one row each: how memory holds them, how they are computed, and what others call them. A packed
 * dtype is stored as words of fewer than 32 bits and computed in float32.
 */
import { keysOf, mapValues } from "../support/invariant.ts";

interface DTypeFacts {
  readonly bytes: 1 | 2 | 4 | 8;
  readonly family: "float" | "integer" | "bool";
  /** The type in which it is computed. */
  readonly type: "f64" | "f32" | "i32" | "i64";
  /** Unit round-off of a float dtype (2^-p with p significant bits); 0 for exact dtypes. */
  readonly epsilon: number;
  /** The exponent of the smallest normal number of a float dtype. */
  readonly lowest: number;
  /** The largest finite number. The smallest is its negative, of int and int64 one less. */
  readonly most: number | bigint;
  /** Whether words hold it (convert.ts). */
  readonly packed: boolean;
  /** The format has no infinities: larger numbers round to NaN. */
  readonly finite?: true;
  /** Tensors of it move and are cast, but no function is computed with them. */
  readonly storage?: true;
  readonly names: {
    /** In nvFuser's dumps: `T0_g___bfloat`. */
    readonly printed: string;
    /** In nvFuser's Python: `DataType.BFloat16`. */
    readonly fusion: string;
    readonly torch: string;
    readonly stablehlo: string;
    /** npy has no bfloat16 and no floats of 8 bits, for which ml_dtypes has these. */
    readonly numpy: string;
    readonly safetensors: string;
  };
  /** The type of a stored element in CUDA C++, cudaDataType_t and ncclDataType_t. NCCL moves 8 bits as uint8. */
  readonly cuda: { readonly c: string; readonly data: number; readonly nccl: number };
}

interface ArrayOf<T> {
  new (buffer: ArrayBufferLike, byteOffset?: number, count?: number): T;
  new (count: number): T;
}

const rows = {
  double: {
    bytes: 8,
    family: "float",
    type: "f64",
    array: Float64Array,
    packed: false,
    epsilon: 2 ** -53,
    lowest: -1022,
    most: Number.MAX_VALUE,
    names: {
      printed: "double",
      fusion: "Double",
      torch: "float64",
      stablehlo: "f64",
      numpy: "<f8",
      safetensors: "F64",
    },
    cuda: { c: "double", data: 1, nccl: 8 },
  },
  float: {
    bytes: 4,
    family: "float",
    type: "f32",
    array: Float32Array,
    packed: false,
    epsilon: 2 ** -24,
    lowest: -126,
    most: (2 - 2 ** -23) * 2 ** 127,
    names: { printed: "float", fusion: "Float", torch: "float32", stablehlo: "f32", numpy: "<f4", safetensors: "F32" },
    cuda: { c: "float", data: 0, nccl: 7 },
  },
  half: {
    bytes: 2,
    family: "float",
    type: "f32",
    array: Uint16Array,
    packed: true,
    epsilon: 2 ** -11,
    lowest: -14,
    most: 65504,
    names: { printed: "__half", fusion: "Half", torch: "float16", stablehlo: "f16", numpy: "<f2", safetensors: "F16" },
    cuda: { c: "unsigned short", data: 2, nccl: 6 },
  },
  bfloat16: {
    bytes: 2,
    family: "float",
    type: "f32",
    array: Uint16Array,
    packed: true,
    epsilon: 2 ** -8,
    lowest: -126,
    most: (2 - 2 ** -7) * 2 ** 127,
    names: {
      printed: "__bfloat",
      fusion: "BFloat16",
      torch: "bfloat16",
      stablehlo: "bf16",
      numpy: "<V2",
      safetensors: "BF16",
    },
    cuda: { c: "unsigned short", data: 14, nccl: 9 },
  },
  float8_e4m3fn: {
    bytes: 1,
    family: "float",
    type: "f32",
    array: Uint8Array,
    packed: true,
    finite: true,
    storage: true,
    epsilon: 2 ** -4,
    lowest: -6,
    most: 448,
    names: {
      printed: "__e4m3",
      fusion: "Float8_e4m3fn",
      torch: "float8_e4m3fn",
      stablehlo: "f8E4M3FN",
      numpy: "<V1",
      safetensors: "F8_E4M3",
    },
    cuda: { c: "unsigned char", data: 28, nccl: 1 },
  },
  float8_e5m2: {
    bytes: 1,
    family: "float",
    type: "f32",
    array: Uint8Array,
    packed: true,
    storage: true,
    epsilon: 2 ** -3,
    lowest: -14,
    most: 57344,
    names: {
      printed: "__e5m2",
      fusion: "Float8_e5m2",
      torch: "float8_e5m2",
      stablehlo: "f8E5M2",
      numpy: "<f1",
      safetensors: "F8_E5M2",
    },
    cuda: { c: "unsigned char", data: 29, nccl: 1 },
  },
  int: {
    bytes: 4,
    family: "integer",
    type: "i32",
    array: Int32Array,
    packed: false,
    epsilon: 0,
    lowest: 0,
    most: 2 ** 31 - 1,
    names: { printed: "int", fusion: "Int32", torch: "int32", stablehlo: "i32", numpy: "<i4", safetensors: "I32" },
    cuda: { c: "int", data: 10, nccl: 2 },
  },
  int64: {
    bytes: 8,
    family: "integer",
    type: "i64",
    array: BigInt64Array,
    packed: false,
    epsilon: 0,
    lowest: 0,
    most: 2n ** 63n - 1n,
    names: { printed: "int64_t", fusion: "Int", torch: "int64", stablehlo: "i64", numpy: "<i8", safetensors: "I64" },
    cuda: { c: "long long", data: 24, nccl: 4 },
  },
  bool: {
    bytes: 1,
    family: "bool",
    type: "i32",
    array: Uint8Array,
    packed: false,
    epsilon: 0,
    lowest: 0,
    most: 1,
    names: { printed: "bool", fusion: "Bool", torch: "bool", stablehlo: "i1", numpy: "|b1", safetensors: "BOOL" },
    cuda: { c: "unsigned char", data: 8, nccl: 1 },
  },
} as const satisfies Readonly<Record<string, DTypeFacts & { readonly array: ArrayOf<unknown> }>>;

export type DType = keyof typeof rows;

/** The typed array that holds a dtype, little-endian. */
export type StorageOf = { readonly [D in DType]: (typeof rows)[D]["array"]["prototype"] };

/** The dtypes that are true for a condition on their rows. */
type Where<Row> = { [D in DType]: (typeof rows)[D] extends Row ? D : never }[DType];
export type FloatDType = Where<{ family: "float" }>;
export type PackedDType = Where<{ packed: true }>;

export const dtypes: { readonly [D in DType]: DTypeFacts & { readonly array: ArrayOf<StorageOf[D]> } } = rows;

export function isDType(value: unknown): value is DType {
  return typeof value === "string" && Object.hasOwn(dtypes, value);
}

export function isPacked(dtype: DType): dtype is PackedDType {
  return dtypes[dtype].packed;
}

/** Whether functions are computed with tensors of the dtype. */
export function isComputed(dtype: DType): boolean {
  return dtypes[dtype].storage !== true;
}

export function isFloatDType(dtype: DType): dtype is FloatDType {
  return dtypes[dtype].family === "float";
}

/** The dtypes by one of their names. */
export function dtypesBy(name: keyof DTypeFacts["names"]): ReadonlyMap<string, DType> {
  return new Map(keysOf(dtypes).map((dtype) => [dtypes[dtype].names[name], dtype]));
}

/** The dtype in which back ends accumulate and compute. Packed ones are rounded once, at the end. */
export function accumulatorOf(dtype: DType): DType {
  return isPacked(dtype) ? "float" : dtype;
}

/** The least and the greatest value, with infinities. */
export function rangeOf(dtype: DType): readonly [number | bigint, number | bigint] {
  const { family, most } = dtypes[dtype];
  if (family === "float") return [-Infinity, Infinity];
  return [family === "bool" ? 0 : typeof most === "bigint" ? -most - 1n : -most - 1, most];
}

/** A table of what follows from each row. */
export function byDType<T>(of: (row: DTypeFacts) => T): { readonly [D in DType]: T } {
  return mapValues<typeof dtypes, DTypeFacts, T>(dtypes, of);
}

export const floatDTypes: readonly FloatDType[] = keysOf(dtypes).filter(isFloatDType);
export const computedFloats: readonly FloatDType[] = floatDTypes.filter(isComputed);
