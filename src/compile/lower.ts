/**
 * `lower` makes one rank's host program from a Fusion; `runPass` runs a single pass on a host program, hand-built or
 * lowered.
 */
import { fail } from "../diagnostics/diagnostic.ts";
import { requireWholeNumber } from "../diagnostics/arguments.ts";
import type { HostProgram } from "../host/nodes.ts";
import type { FusionData } from "../ir/fusion-data.ts";
import type { LoweringOptions } from "../passes/options.ts";
import { scopesOf } from "../host/traverse.ts";
import {
  decompose,
  type Decomposed,
  type HostPass,
  type PassObserver,
  placeTensors,
  runHostPasses,
  runPipeline,
  segmentFusion,
  validate,
} from "../passes/pipeline.ts";
import { streamAxesLeft } from "../passes/validators.ts";
import { type HostClass, hostsOf, type HostsByClass, lowerByClass, usedTensors } from "./lowering-class.ts";
import { loweringNames } from "./options.ts";
import { optionPlace, resolveOptions } from "./options/resolve.ts";

export interface LowerOptions extends Partial<LoweringOptions> {
  /** The device to lower for; 0 if omitted. */
  readonly rank?: number;
  /** Called after every pass. */
  readonly onPass?: PassObserver;
}

/** Something that has a Fusion's data: a `Fusion`. */
export interface HasFusionData {
  data(): FusionData;
}

/**
 * The host program of one rank, symbolic in sizes. Throws `bad-option` and `option-unknown` for options, and the
 * diagnostics of the pass that cannot lower the Fusion.
 */
export function lower(fusion: HasFusionData, { rank = 0, onPass, ...given }: LowerOptions = {}): HostProgram {
  requireWholeNumber("lower(fusion, { rank })", rank, 0);
  return runPipeline(fusion.data(), { rank, options: resolveLoweringOptions(given) }, onPass);
}

/**
 * The host programs of ranks 0 .. `devices` - 1, and the Fusion as `decomposedData`. Ranks that lower alike share one
 * program, of whose passes `onPass` hears once. Throws what `lower` throws.
 */
export function lowerRanks(
  fusion: HasFusionData,
  devices: number,
  given: Omit<LowerOptions, "rank"> = {},
): Decomposed & HostsByClass {
  const { onPass, ...lowering } = given;
  const options = resolveLoweringOptions(lowering);
  const { placed, decomposed } = decompose(fusion.data(), { rank: 0, options }, onPass);
  const lowered = lowerByClass(usedTensors(decomposed), devices, (rank, rules) => {
    const heard: Parameters<PassObserver>[0][] = [];
    const host = segmentFusion(decomposed, { rank, rules, options }, (event) => heard.push(event));
    return { host, heard };
  });
  // A class that was split is heard of in parts.
  for (const { made } of lowered) for (const event of made.heard) onPass?.(event);
  const classes = lowered.map(({ ranks, made, rules }): HostClass => ({ ranks, host: made.host, rules }));
  return { placed, decomposed, classes, hosts: hostsOf(classes) };
}

/** A Fusion as the passes on it leave it, before any rank's host program. Throws what `lower` throws. */
export function decomposedData(fusion: HasFusionData, given: Partial<LoweringOptions>): Decomposed {
  return decompose(fusion.data(), { rank: 0, options: resolveLoweringOptions(given) });
}

/** The tensors of a Fusion as they lie on the devices, with the meshes and shardings that lowering derives. */
export function placedData(fusion: HasFusionData, given: Partial<LoweringOptions>): FusionData {
  return placeTensors(fusion.data(), { rank: 0, options: resolveLoweringOptions(given) });
}

/**
 * A hand-built host program whose ops have Stream axes left, lowered for `rank`; any other program unchanged. Throws
 * `host-program-invalid` if it also has loops or branches, and what `lower` throws.
 */
export function lowerStreams(program: HostProgram, { rank = 0, onPass, ...given }: LowerOptions): HostProgram {
  const [left] = streamAxesLeft(program);
  if (left === undefined) return program;
  const { id } = left.tensor;
  if (program.body.some((statement) => scopesOf(statement).length > 0)) {
    fail("host-program-invalid", `T${id} has a Stream axis, and the program has loops or branches`, {
      place: { kind: "tensor", text: left.text },
      found: "Stream on the result of an op",
      expected: "Stream axes in programs without loops: lowering turns them into loops",
      help: `remove Stream from T${id} and write its loop, or leave all loops to lowering`,
    });
  }
  return runHostPasses(program, { rank, options: resolveLoweringOptions(given) }, onPass);
}

/**
 * Runs one pass on a host program and validates the result for the pass's stage. Throws `bad-option`, `option-unknown`,
 * the pass's diagnostics and `host-program-invalid`.
 */
export function runPass(
  pass: HostPass,
  program: HostProgram,
  { rank = 0, ...given }: Omit<LowerOptions, "onPass"> = {},
): HostProgram {
  requireWholeNumber("runPass(pass, program, { rank })", rank, 0);
  const result = pass.run(program, { rank, options: resolveLoweringOptions(given) });
  if (result !== program) validate(pass.to, result);
  return result;
}

/** Throws `bad-option` and `option-unknown`. */
export function resolveLoweringOptions(given: Partial<LoweringOptions>): LoweringOptions {
  const resolved = resolveOptions(loweringNames, given);
  const { backend, p2p } = resolved;
  if (p2p === "linear" && backend !== "nccl") {
    fail("bad-option", `p2p linear coalesces sends and receives, which the ${backend} backend does not support`, {
      place: optionPlace("p2p"),
      found: `linear with backend ${backend}`,
      expected: backend === "cuda" ? "rotated or broadcast" : "broadcast",
      help: 'use another p2p, or backend "nccl" (--backend nccl)',
    });
  }
  if (given.protocol !== undefined && backend !== "cuda") {
    fail("bad-option", `the ${backend} backend has no point-to-point protocol`, {
      place: optionPlace("protocol"),
      found: `${given.protocol} with backend ${backend}`,
      expected: 'no protocol, or backend "cuda"',
      help: "leave the protocol out, or set the backend to cuda (--backend cuda)",
    });
  }
  return resolved;
}
