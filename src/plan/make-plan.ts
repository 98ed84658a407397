/**
 * A plan: the device operations of all ranks as files, which any process can run that binds the addresses. A plan is
 * made of a verified Compilation.
 *
 *     plan.json          what it is, what it needs, and the hashes of the other files
 *     rank-R.json        the memory and operations of a rank
 *     kernels/kN.cu      the source of a kernel
 */
import { kernelOptions } from "../backends/cuda/kernels/compiler.ts";
import { kernelName } from "../backends/cuda/kernels/kernel-source.ts";
import { tensorAlignment } from "../backends/cuda/ops/address.ts";
import type { BoundTensor, DeviceOp, DeviceOps } from "../backends/cuda/ops/device-op.ts";
import { deviceOps } from "../backends/cuda/ops/device-ops.ts";
import { createPlannedKernels } from "../backends/cuda/ops/planning.ts";
import { type ListNotes, programNotes } from "../backends/cuda/ops/list-notes.ts";
import type { Compilation } from "../compile/compile.ts";
import { fail } from "../diagnostics/diagnostic.ts";
import { type Tensor, type TensorId, withoutReductions } from "../ir/domain.ts";
import { nameOf } from "../ir/origin.ts";
import { shapeOf } from "../ir/sizes.ts";
import { indicesOn, layoutOfShape } from "../record/local-layout.ts";
import { at, invariant } from "../support/invariant.ts";
import { flightPlans } from "../trace/flight/flight-record.ts";
import { foldLists, isBlock } from "./blocks.ts";
import { type PlanDocument, planFormat, planVersion, sha256 } from "./plan-document.ts";
import type { PlanOp, PlanTensor, RankDocument } from "./rank-document.ts";

export interface PlanOptions {
  /** The version of Braid. */
  readonly braid: string;
  /** A hash of the Program. */
  readonly program: string;
  /** The options that made it, as text. */
  readonly options: Readonly<Record<string, string>>;
  readonly target: PlanDocument["target"];
  /** By position of an input of indices: the extent of the axis that they index. */
  readonly limits: ReadonlyMap<number, number>;
  /** What a model file calls the inputs and outputs, in their order; null for the names of the program. */
  readonly names: { readonly inputs: readonly string[]; readonly outputs: readonly string[] } | null;
}

/** By path in the plan's folder, plan.json last. */
export type PlanFiles = ReadonlyMap<string, string>;

export interface MadePlan {
  readonly files: PlanFiles;
  /** Device operations of all ranks. */
  readonly operations: number;
}

/** Throws `plan-unsupported` for a Program that a plan cannot hold, and `plan-unverified`. */
export function makePlan(
  compilation: Compilation,
  { braid, program: hash, options, target, limits, names }: PlanOptions,
): MadePlan {
  const { program, report, reported } = compilation;
  if (!report.ok || reported !== program) unverified(report.findings.length);
  const planned = createPlannedKernels();
  const lists = program.ranks.map(({ rank }) => deviceOps(program, rank, target, { planned }));
  const kernels = new Map<string, number>();
  for (const text of lists.flatMap((list) => list.kernels)) kernels.set(text, kernels.get(text) ?? kernels.size);
  const kernelFile = (number: number): string => `kernels/k${number}.cu`;
  const files = new Map<string, string>([...kernels].map(([text, number]) => [kernelFile(number), text]));
  const flights = flightPlans(program);
  for (const list of lists) {
    const notes = programNotes(program, list.rank, flights);
    files.set(rankFile(list.rank), jsonText(foldLists(rankDocument(compilation, list, notes, kernels))));
  }
  const { commands, streams, regions } = report.size;
  const document: PlanDocument = {
    format: planFormat,
    version: planVersion,
    braid,
    program: hash,
    options,
    verified: { ok: true, verifier: braid, commands, streams, regions },
    world: program.ranks.length,
    target,
    inputs: signature(compilation, compilation.signature.inputs, limits, names?.inputs),
    outputs: signature(compilation, compilation.signature.outputs, new Map(), names?.outputs),
    kernels: [...kernels.values()].map((number) => ({
      file: kernelFile(number),
      entry: kernelName,
      options: [...kernelOptions],
    })),
    files: Object.fromEntries([...files].map(([file, text]) => [file, sha256(text)])),
  };
  files.set("plan.json", jsonText(document));
  return { files, operations: lists.reduce((sum, { ops }) => sum + ops.length, 0) };
}

export function rankFile(rank: number): string {
  return `rank-${rank}.json`;
}

/** A line for each field, and for each entry of its lists of objects, so that changes are seen by line. */
function jsonText(document: object): string {
  const fields = Object.entries(document).map(([name, value]: [string, unknown]) => {
    const isTable = Array.isArray(value) && value.some((each) => typeof each === "object");
    return `${JSON.stringify(name)}: ${isTable ? tableText(value) : JSON.stringify(value)}`;
  });
  return `{\n${fields.join(",\n")}\n}\n`;
}

function tableText(rows: readonly unknown[]): string {
  return `[\n${rows.map(rowText).join(",\n")}\n]`;
}

function rowText(row: unknown): string {
  return isBlock(row) ? `{"$times":${row.$times},"$rows":${tableText(row.$rows)}}` : JSON.stringify(row);
}

function signature(
  { signature: { tensors }, sizes }: Compilation,
  ids: readonly TensorId[],
  limits: ReadonlyMap<number, number>,
  names: readonly string[] | undefined,
): PlanDocument["inputs"] {
  return ids.map((id, position) => {
    const tensor = at(tensors, id);
    const limit = limits.get(position);
    return {
      name: `T${id}`,
      named: names?.[position] ?? nameOf(tensor),
      dtype: tensor.dtype,
      shape: [...shapeOf(tensor, sizes)],
      ...(limit === undefined ? {} : { limit }),
    };
  });
}

function rankDocument(
  compilation: Compilation,
  list: DeviceOps,
  notes: ListNotes,
  kernels: ReadonlyMap<string, number>,
): RankDocument {
  const { rank, world, streams, events, memory, gemms, attentions, ops, waitRuns } = list;
  const { statements, commands } = notes.flight();
  const tensors = (bound: readonly BoundTensor[]): PlanTensor[] =>
    bound.map((each) => planTensor(compilation, each, rank));
  return {
    rank,
    world,
    streams,
    events,
    memory: { ...memory, in: tensors(memory.in), out: tensors(memory.out), copied: tensors(memory.copied) },
    kernels: list.kernels.map((text) => kernels.get(text) ?? -1),
    gemms,
    attentions,
    ops: ops.map((op) => planOp(op, compilation.decomposed !== undefined)),
    waitRuns,
    statements,
    commands: commands.map((command, i) => ({ ...command, kind: notes.kindOf(i), details: notes.detailsOf(i) })),
  };
}

function planTensor(
  { signature: { tensors, inputs, outputs }, sizes }: Compilation,
  bound: BoundTensor,
  rank: number,
): PlanTensor {
  const { role, position, place } = bound;
  invariant(position !== null, "tensors of a whole program have positions", { bound });
  const tensor: Tensor = at(tensors, at(role === "input" ? inputs : outputs, position));
  const whole = shapeOf(tensor, sizes);
  const { shape, strides } = layoutOfShape(tensor, whole, rank);
  const held = withoutReductions(tensor.domain.logical).map((axis, i) =>
    indicesOn(tensor, axis, at(whole, i), rank).map(({ start, stop }): [number, number] => [start, stop]),
  );
  return {
    ...bound,
    position,
    shape: [...shape],
    strides: [...strides],
    held,
    bind: place.space === "in" || place.space === "out" ? "address" : "copy",
    align: tensorAlignment,
    place,
  };
}

function planOp(op: DeviceOp, isLowered: boolean): PlanOp {
  if (op.kind !== "transfer") return op;
  return fail("plan-unsupported", "a plan cannot hold transfers of NCCL", {
    place: { kind: "option", text: "--backend" },
    found: `a transfer on ${op.communicator}`,
    expected: "communication by copies and kernels of Braid's own",
    help: isLowered
      ? "compile with --backend cuda"
      : 'give the communications of the host program the back end "cuda": { backend: "cuda" }, or backend=CUDA in a dump',
  });
}

function unverified(findings: number): never {
  return fail("plan-unverified", "a plan is made of a verified program", {
    place: { kind: "call", text: "makePlan(compilation)" },
    found: `${findings} findings of the verifier`,
    expected: "none",
    help: "run braid verify, and mend what it finds",
  });
}
