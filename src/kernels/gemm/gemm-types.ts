/** How each dtype goes through the matrix kernels: the functions of the WebAssembly module that pack, multiply and unpack it. */
import type { DType } from "../../numerics/dtype.ts";

/** Contractions of bool do not exist. */
export type GemmDType = Exclude<DType, "bool">;

export interface GemmType {
  readonly pack: `pack_${"bits32" | "bits64" | "half" | "bfloat16"}`;
  readonly multiply: `multiply_${"f32" | "f64" | "i32" | "i64"}`;
  /** Bytes of a packed element and of a sum. */
  readonly packedBytes: 4 | 8;
  /** 1 + the index of the output format among those of `multiply`. */
  readonly output: 1 | 2 | 3;
}

export const gemmTypes: { readonly [D in GemmDType]: GemmType } = {
  double: { pack: "pack_bits64", multiply: "multiply_f64", packedBytes: 8, output: 1 },
  float: { pack: "pack_bits32", multiply: "multiply_f32", packedBytes: 4, output: 1 },
  half: { pack: "pack_half", multiply: "multiply_f32", packedBytes: 4, output: 2 },
  bfloat16: { pack: "pack_bfloat16", multiply: "multiply_f32", packedBytes: 4, output: 3 },
  int: { pack: "pack_bits32", multiply: "multiply_i32", packedBytes: 4, output: 1 },
  int64: { pack: "pack_bits64", multiply: "multiply_i64", packedBytes: 8, output: 1 },
};
