/** The schema of a plan's plan.json: what the plan is, what it needs, and the hashes of its other files. */
import { createHash } from "node:crypto";
import * as v from "valibot";
import { fail, type Place } from "../diagnostics/diagnostic.ts";
import { count, dtype } from "./rank-document.ts";

export const planFormat = "braid-plan";
/** Raised by every change that an older reader would misunderstand. */
export const planVersion = 2;

const hash = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/));

/** `--backend`. */
const flag = v.pipe(v.string(), v.regex(/^--/));

/** An input or output of the program, over all ranks. */
const signature = v.object({
  name: v.string(),
  /** The name that the program or the model file gave it. */
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
  options: v.record(flag, v.string()),
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

/** v.record takes lists, too, and skips members of the names below, which these records never have. */
const record = v.custom<object>(
  (value) =>
    typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    !["__proto__", "prototype", "constructor"].some((name) => Object.hasOwn(value, name)),
  "an object, with none of the members __proto__, prototype and constructor",
);

/** What `planDocument` does not check of its records. */
export const planRecords = v.object({ options: record, files: record });

export type PlanDocument = v.InferOutput<typeof planDocument>;

/** 64 hexadecimal digits. */
export function sha256(bytes: string | Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

// The diagnostic of a plan whose files are not as `braid compile` writes them.

export function planPlace(folder: string, file: string): Place {
  return { kind: "file", path: `${folder.replace(/\/+$/, "")}/${file}` };
}

export function planInvalid(folder: string, file: string, found: string, expected: string): never {
  return fail("plan-invalid", "a plan's file is not as braid compile wrote it", {
    place: planPlace(folder, file),
    found,
    expected,
    help: "make the plan again: braid compile FILE -o FOLDER",
  });
}
