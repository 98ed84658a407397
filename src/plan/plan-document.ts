/** The schema of a plan's plan.json: what the plan is, what it needs, and the hashes of its other files. */
import * as v from "valibot";
import { count, dtype } from "./rank-document.ts";

export const planFormat = "braid-plan";
/** Raised by every change that an older reader would misunderstand. */
export const planVersion = 1;

const hash = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/));

/** An input or output of the program, over all ranks. */
const signature = v.object({
  name: v.string(),
  /** The name that the program gave it. */
  named: v.nullable(v.string()),
  dtype,
  /** Of the whole tensor. */
  shape: v.array(count),
  /** For indices: the extent of the axis that they index. */
  limit: v.exactOptional(count),
});

export const planDocument = v.object({
  format: v.literal(planFormat),
  version: v.literal(planVersion),
  /** The version of Braid that wrote it. */
  braid: v.string(),
  /** A hash of the Program, without origins. */
  program: v.string(),
  /** The options that were given, as text. */
  options: v.record(v.string(), v.string()),
  verified: v.object({ ok: v.literal(true), verifier: v.string(), commands: count, streams: count, regions: count }),
  world: v.pipe(count, v.minValue(1), v.maxValue(65_536)),
  /** Compute capability times 10, and multiprocessors: a GPU has at least these. */
  target: v.object({ capability: count, multiprocessors: count }),
  inputs: v.array(signature),
  outputs: v.array(signature),
  /** Sources of CUDA C++. The kernel is `entry`. */
  kernels: v.array(v.object({ file: v.string(), entry: v.string(), options: v.array(v.string()) })),
  /** SHA-256 of every other file, by path. */
  files: v.record(v.string(), hash),
});

export type PlanDocument = v.InferOutput<typeof planDocument>;
