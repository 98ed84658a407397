/**
 * The dtypes of Braid: their sizes, their names in nvFuser's dumps, and the typed arrays that hold them. half and
 * bfloat16 are stored as 16-bit words and computed in float32 (convert.ts).
 */
export type DType = "double" | "float" | "half" | "bfloat16" | "int" | "int64" | "bool";

export interface DTypeFacts {
  readonly bytes: 1 | 2 | 4 | 8;
  /** The name in nvFuser's dumps: `T0_g___bfloat`. */
  readonly printed: string;
  readonly family: "float" | "integer" | "bool";
  /** Unit round-off of a float dtype (2^-p with p significant bits); 0 for exact dtypes. */
  readonly epsilon: number;
}

export const dtypes: { readonly [K in DType]: DTypeFacts } = {
  double: { bytes: 8, printed: "double", family: "float", epsilon: 2 ** -53 },
  float: { bytes: 4, printed: "float", family: "float", epsilon: 2 ** -24 },
  half: { bytes: 2, printed: "__half", family: "float", epsilon: 2 ** -11 },
  bfloat16: { bytes: 2, printed: "__bfloat", family: "float", epsilon: 2 ** -8 },
  int: { bytes: 4, printed: "int", family: "integer", epsilon: 0 },
  int64: { bytes: 8, printed: "int64_t", family: "integer", epsilon: 0 },
  bool: { bytes: 1, printed: "bool", family: "bool", epsilon: 0 },
};

export function isDType(value: unknown): value is DType {
  return typeof value === "string" && Object.hasOwn(dtypes, value);
}

/** The dtype in which back ends accumulate and compute. half and bfloat16 are rounded once, at the end. */
export const accumulatorOf: { readonly [K in DType]: DType } = {
  double: "double",
  float: "float",
  half: "float",
  bfloat16: "float",
  int: "int",
  int64: "int64",
  bool: "bool",
};
