/** The schema of a plan's rank-R.json: the device operations of one rank, and what messages say about its commands. */
import * as v from "valibot";
import type { Command } from "../commands/command.ts";
import { type DType, dtypes, floatDTypes } from "../numerics/dtype.ts";
import type { DeviceOps, TransferOp } from "../backends/cuda/ops/device-op.ts";
import { keysOf } from "../support/invariant.ts";

/** Exact in a float64, as every address and size on a GPU is. */
export const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
/** JSON.parse reads 1e999 as infinite. */
const finite = v.pipe(v.number(), v.minValue(-Number.MAX_VALUE), v.maxValue(Number.MAX_VALUE));
const counts = v.array(count);
const positive = v.pipe(count, v.minValue(1));
const three = v.strictTuple([positive, positive, positive]);
const four = v.strictTuple([count, count, count, count]);
const index = v.pipe(v.number(), v.safeInteger(), v.minValue(-1));
const offset = { offset: count };
export const dtype = v.picklist(keysOf(dtypes) satisfies readonly DType[]);

const word = v.object({ space: v.literal("word"), rank: count, index: count });
const progress = v.object({ space: v.literal("progress"), stream: count });

/** Where tensors lie. */
const arenas = [
  v.object({ space: v.picklist(["in", "out"]), tensor: count, ...offset }),
  v.object({ space: v.literal("temporary"), ...offset }),
  v.object({ space: v.literal("symmetric"), rank: count, ...offset }),
] as const;

export const address = v.variant("space", [
  ...arenas,
  word,
  v.object({ space: v.literal("gate"), index: count }),
  progress,
  v.object({ space: v.literal("scratch"), stream: count, ...offset }),
  v.object({ space: v.literal("workspace"), stream: count }),
]);

const base = { stream: count, command: index };
const launch = { kernel: count, grid: three, block: three, sharedBytes: v.exactOptional(positive) };

const memoryOperation = v.object({
  kind: v.picklist(["write", "wait"]),
  address: v.variant("space", [word, progress]),
  value: v.pipe(count, v.maxValue(0xffff_ffff)),
});

const operation = v.variant("kind", [
  v.object({ kind: v.literal("copy"), ...base, to: address, from: address, bytes: positive }),
  v.object({
    kind: v.literal("copy2d"),
    ...base,
    to: address,
    toPitch: count,
    from: address,
    fromPitch: count,
    width: positive,
    height: positive,
  }),
  v.object({ kind: v.literal("batch"), ...base, operations: v.array(memoryOperation) }),
  v.object({ kind: v.literal("launch"), ...base, ...launch, parameters: v.array(v.union([count, address])) }),
  v.object({
    kind: v.literal("gemm"),
    ...base,
    gemm: count,
    a: address,
    b: address,
    bias: v.nullable(address),
    addend: v.exactOptional(address),
    scales: v.exactOptional(v.array(address)),
    c: address,
  }),
  v.object({
    kind: v.literal("attention"),
    ...base,
    attention: count,
    operands: v.array(address),
    scratch: address,
  }),
  v.object({ kind: v.literal("record"), ...base, event: count }),
  v.object({ kind: v.literal("wait"), ...base, event: count }),
]);

/** `held`: by axis, the runs [start, stop) of the whole tensor's indices that this rank has, in ascending order. */
const tensor = v.object({
  role: v.picklist(["input", "output"]),
  position: count,
  /** Of an input that the run writes: the position of the output that it is afterwards. */
  output: v.exactOptional(count),
  name: v.string(),
  dtype,
  shape: counts,
  /** In elements. */
  strides: counts,
  held: v.array(v.array(v.strictTuple([count, count]))),
  bytes: count,
  /** address: the caller's memory is used. copy: it is copied to or from `place`. */
  bind: v.picklist(["address", "copy"]),
  /** Of the caller's address, in bytes. */
  align: positive,
  place: v.variant("space", arenas),
});

const matrix = v.object({
  rows: positive,
  columns: positive,
  leading: positive,
  transposed: v.boolean(),
  batchStride: count,
});
const gemm = v.object({
  layout: v.object({
    dtype: v.picklist(floatDTypes),
    swapped: v.boolean(),
    left: matrix,
    right: matrix,
    result: matrix,
    hasBias: v.boolean(),
    scaled: v.exactOptional(
      v.object({
        left: v.picklist(floatDTypes),
        right: v.picklist(floatDTypes),
        vectors: v.boolean(),
        blocks: v.exactOptional(v.object({ left: positive, right: positive })),
        fastAccumulation: v.exactOptional(v.boolean()),
      }),
    ),
    accumulate: v.exactOptional(v.boolean()),
    batchCount: positive,
    offsets: v.array(v.object({ a: count, b: count, c: count })),
  }),
  margin: count,
  fallback: v.object(launch),
});

const operand = v.object({ dtype, shape: counts, strides: counts });
const graphType = v.picklist(["half", "bfloat16", "float", "int32", "bool"]);
const memory = v.variant("kind", [
  v.object({ kind: v.literal("virtual") }),
  v.object({ kind: v.literal("number"), value: v.union([finite, v.literal("-infinity")]) }),
  v.object({ kind: v.literal("operand"), position: count }),
  v.object({ kind: v.literal("scratch") }),
]);
const graphOp = { name: v.string(), inputs: counts, to: count };
const attention = v.object({
  kernel: v.object({
    kind: v.picklist(["sdpa", "sdpaBackward"]),
    causal: v.nullable(v.picklist(["topLeft", "bottomRight"])),
    window: v.nullable(positive),
    scale: finite,
    inputs: v.array(operand),
    outputs: v.array(operand),
  }),
  graph: v.object({
    tensors: v.array(v.object({ id: positive, name: v.string(), type: graphType, dims: four, strides: four, memory })),
    ops: v.array(
      v.variant("kind", [
        v.object({ kind: v.picklist(["matmul", "reshape"]), ...graphOp }),
        v.object({ kind: v.literal("reduction"), operator: v.picklist(["ADD", "MAX"]), ...graphOp }),
        v.object({
          kind: v.literal("pointwise"),
          mode: v.picklist([
            "ADD",
            "MUL",
            "DIV",
            "SUB",
            "EXP",
            "LOG",
            "CMP_GT",
            "CMP_GE",
            "GEN_INDEX",
            "BINARY_SELECT",
          ]),
          compute: graphType,
          axis: v.nullable(count),
          ...graphOp,
        }),
      ]),
    ),
  }),
  scratchBytes: count,
});

/** As in src/commands/command.ts, which has the meaning of each. */
const commandKinds = [
  "launch",
  "copy",
  "transfer",
  "recordEvent",
  "waitEvent",
  "signal",
  "waitSignal",
  "alloc",
  "free",
] as const satisfies readonly Command["kind"][];

export const rankDocument = v.object({
  rank: count,
  world: positive,
  streams: v.array(
    v.object({
      name: v.string(),
      role: v.picklist(["caller", "worker", "communicator", "pair", "copy"]),
      priority: count,
    }),
  ),
  events: count,
  memory: v.object({
    in: v.array(tensor),
    out: v.array(tensor),
    copied: v.array(tensor),
    temporaryBytes: count,
    symmetricBytes: counts,
    words: counts,
    gates: count,
    scratchBytes: counts,
    workspaceBytes: counts,
  }),
  /** Positions in the plan's kernels. */
  kernels: counts,
  gemms: v.array(gemm),
  attentions: v.array(attention),
  ops: v.array(operation),
  waitRuns: v.array(v.array(v.object({ word, command: count }))),
  /** For messages: the commands that operations name, their statements, and what each waits for: [rank, command]. */
  statements: v.array(v.string()),
  commands: v.array(
    v.object({
      kind: v.picklist(commandKinds),
      details: v.string(),
      stream: count,
      statement: count,
      needs: v.exactOptional(v.array(v.strictTuple([count, index]))),
    }),
  ),
});

export type RankDocument = DeepReadonly<v.InferOutput<typeof rankDocument>>;
type DeepReadonly<T> = { readonly [Name in keyof T]: DeepReadonly<T[Name]> };
export type PlanTensor = RankDocument["memory"]["in"][number];
export type PlanOp = Exclude<DeviceOps["ops"][number], TransferOp>;
