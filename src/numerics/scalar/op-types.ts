/** The names of the scalar operations. The Fusion IR, kernels and collectives use them; scalar-semantics.ts says what they do. */
export type UnaryOpType = "neg" | "abs" | "relu" | "gelu" | "exp";
export type BinaryOpType = "add" | "sub" | "mul" | "div";
export type ReductionOpType = "sum" | "prod" | "amax" | "amin";
