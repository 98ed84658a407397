/** Braid's own implementations: lowered, recorded, linked, scheduled, verified and prepared as `braid run` does it, then run without moving inputs. */
import type { Group, Prepared } from "../../backends/backend.ts";
import type { Program } from "../../commands/program.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import type { BackendName } from "../../executor/backend-by-name.ts";
import { linkPrograms } from "../../executor/linked-program.ts";
import { rankPrograms } from "../../executor/program-source.ts";
import { sizesFromMeshes } from "../../ir/sizes.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import type { BraidOptions } from "./braid-options.ts";
import type { Contender, Outcome, Timing } from "./contender.ts";
import type { Implementation, OwnName } from "./implementation.ts";
import type { Matrices } from "./matrices.ts";
import { inputBytes, type Layout } from "./operands.ts";
import { buildPrimitive, type Form, type Problem } from "./primitives.ts";
import { checkSamples } from "./sampled-check.ts";

export type OwnImplementation = Extract<Implementation, { readonly kind: "braid" }>;

/** What is run, and where its operands lie. */
export interface Planned {
  readonly implementation: OwnImplementation;
  readonly layout: Layout;
  readonly program: Program;
}

const usualStreams = 4;

/** Throws what lowering, recording, linking and the verifier throw: not every combination of options exists. */
export function planOwn(implementation: OwnImplementation, problem: Problem, on: BackendName): Planned {
  const { name, options } = implementation;
  const { devices, primitive } = problem;
  const { chunks = devices, streams = usualStreams, copyLane = on === "cuda" ? "dedicated" : "inline" } = options;
  const form = formOf(name, options);
  if (options.chunks !== undefined && form !== "collective") chunksWithoutLoop(form, options.chunks);
  const layout: Layout = { problem, form, chunks };
  const lowering = loweringOf(form, options, primitive !== "tp-columnwise");
  const { hosts, signature } = rankPrograms(buildPrimitive(form, problem, chunks), devices, lowering);
  const program = linkPrograms(hosts, sizesFromMeshes(signature.tensors), new Map(), {
    numberOfStreams: streams,
    p2pProtocol: options.protocol ?? "get",
    copyLane,
    schedule: options.schedule ?? {},
    verify: "on",
  });
  return { implementation, layout, program };
}

function formOf(name: OwnName, { form = "rotated" }: BraidOptions): Form {
  return name === "braid" ? form : name;
}

/** NCCL's own collective where that is what is compared with, and for the one form that only it has; else copies between devices. */
function usualBackend(form: Form): "nccl" | "cuda" {
  return form === "serial" || form === "linear" ? "nccl" : "cuda";
}

function loweringOf(
  form: Form,
  { backend = usualBackend(form), protocol, interStreamSync = false }: BraidOptions,
  insertReshardingAfter: boolean,
): Partial<LoweringOptions> {
  return {
    communicatorBackend: backend,
    pointToPoint: form === "linear" || form === "broadcast" ? form : "rotated",
    interStreamSynchronization: interStreamSync,
    // Partial products are exchanged, not A.
    insertReshardingAfter,
    ...(protocol === undefined ? {} : { p2pProtocol: protocol }),
  };
}

function chunksWithoutLoop(form: Form, chunks: number): never {
  return fail({
    code: "bad-option",
    message: `form ${form} has one chunk for each device`,
    place: { kind: "option", text: "chunks" },
    found: `chunks=${chunks} with form=${form}`,
    expected: "chunks with form=collective",
    help: "leave chunks out; splitChunks cuts the chunks of other forms",
  });
}

export interface Place {
  readonly group: Group;
  /** The ranks that this process holds. */
  readonly ranks: readonly number[];
  /** Brings all ranks together, on their devices too where they have some. */
  readonly meet: () => Promise<void>;
  /** Milliseconds for one run. */
  readonly timeout: number;
}

/** All ranks call it together. */
export async function prepareOwn(planned: Planned, place: Place, matrices: Matrices): Promise<Contender> {
  const { implementation, layout, program } = planned;
  const prepared = await place.group.prepare(program);
  for (const { id, role, rank, position } of program.buffers) {
    if (role !== "input" || position === null || !place.ranks.includes(rank)) continue;
    prepared.write(id, inputBytes(layout, position, rank, matrices));
  }
  return {
    implementation,
    turn: async (runs) => {
      const timings: Timing[] = [];
      for (let run = 0; run < runs; run++) {
        await place.meet();
        timings.push(await timedRun(prepared, place.timeout));
      }
      return { kind: "done", value: timings };
    },
    check: async () => checkOutputs(planned, prepared, place.ranks, matrices),
    release: () => prepared.release(),
  };
}

async function timedRun(prepared: Prepared, timeout: number): Promise<Timing> {
  const report = await prepared.execute({ timeout, deviceTime: true });
  const { milliseconds, deviceMilliseconds = milliseconds, hostMilliseconds } = report;
  return {
    milliseconds: deviceMilliseconds,
    hostMicroseconds: hostMilliseconds === undefined ? null : 1000 * hostMilliseconds,
  };
}

function checkOutputs(
  { layout, program }: Planned,
  prepared: Prepared,
  ranks: readonly number[],
  matrices: Matrices,
): Outcome<number> {
  const outputs = program.buffers.filter(({ role, rank }) => role === "output" && ranks.includes(rank));
  const parts = outputs.map(({ id, rank }) => checkSamples(layout, rank, prepared.read(id), matrices).partOfBound);
  return { kind: "done", value: Math.max(...parts) };
}
