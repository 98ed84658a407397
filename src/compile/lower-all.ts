/**
 * The host programs of all ranks: lowered from a Fusion, or given. All ranks share one table of input and output
 * tensors, by which whole tensors are cut into shards.
 */
import { type Diagnostic, DiagnosticError, fail } from "../diagnostics/diagnostic.ts";
import { requireWholeNumber } from "../diagnostics/arguments.ts";
import { mostDevices } from "../host/program-file.ts";
import { partitionBy } from "../host/alike/classes.ts";
import { createRankRules } from "../host/alike/rank-rules.ts";
import type { HostProgram } from "../host/nodes.ts";
import { print } from "../host/print/print.ts";
import type { Tensor, TensorId } from "../ir/domain.ts";
import type { FusionData } from "../ir/fusion-data.ts";
import { originated } from "../ir/origin.ts";
import { printTensor } from "../ir/print-tensor.ts";
import { type HasFusionData, type LowerOptions, lowerRanks } from "./lower.ts";
import type { HostClass } from "./lowering-class.ts";
import { at } from "../support/invariant.ts";

/** A Fusion; one host program for all ranks; one per rank, in order; or a function of the rank. */
export type ProgramSource = HasFusionData | HostProgram | readonly HostProgram[] | ((rank: number) => HostProgram);

/** Tensors by id, and which of them the caller binds. */
export interface Signature {
  readonly tensors: readonly Tensor[];
  readonly inputs: readonly TensorId[];
  readonly outputs: readonly TensorId[];
}

export interface Lowered {
  readonly signature: Signature;
  /** Of a Fusion, as the passes on it leave it; absent if its regions were lowered one by one. */
  readonly decomposed?: FusionData;
  /** Indexed by rank. Those that were lowered are made when they are asked for. */
  readonly hosts: readonly HostProgram[];
  /** The ranks whose host programs were lowered at once; if absent, those with the same one. */
  readonly classes?: readonly HostClass[];
}

/** The classes of the ranks, in order of the first of each. */
export function classesOf({ hosts, classes }: Pick<Lowered, "hosts" | "classes">): readonly HostClass[] {
  if (classes !== undefined) return classes;
  return partitionBy([...hosts.keys()], hosts).map((ranks) => ({
    ranks,
    host: at(hosts, at(ranks, 0)),
    rules: createRankRules(ranks),
  }));
}

export interface LowerAllOptions extends Omit<LowerOptions, "rank"> {
  readonly devices: number;
}

/**
 * Lowering options do not affect given host programs. Throws what lowering throws, `device-count`,
 * `host-programs-differ` and `mesh-too-large`.
 */
export function lowerAll(source: ProgramSource | Lowered, { devices, ...options }: LowerAllOptions): Lowered {
  requireWholeNumber("compile(source, { devices })", devices, 1, mostDevices);
  const ranks = Array.from({ length: devices }, (_, rank) => rank);
  const lowered = lowerEach(source, ranks, options);
  requireMeshDevices(lowered.signature.tensors, devices);
  return lowered;
}

function lowerEach(
  source: ProgramSource | Lowered,
  ranks: readonly number[],
  options: Omit<LowerOptions, "rank">,
): Lowered {
  if (isLowered(source)) {
    if (source.hosts.length !== ranks.length) wrongCount(source.hosts.length, ranks.length);
    return source;
  }
  if (isFusionSource(source)) {
    // Shardings spread to inputs and outputs.
    const { placed, decomposed, hosts, classes } = lowerRanks(source, ranks.length, options);
    return { signature: placed, decomposed, hosts, classes };
  }
  const hosts = givenHosts(source, ranks);
  const [first] = hosts;
  if (first === undefined || hosts.length !== ranks.length) wrongCount(hosts.length, ranks.length);
  hosts.forEach((host, rank) => requireSameSignature(first, host, rank));
  return { signature: first, hosts };
}

function isLowered(source: ProgramSource | Lowered): source is Lowered {
  return typeof source === "object" && "hosts" in source && "signature" in source;
}

/** Whether the source is a Fusion, not host programs. */
export function isFusionSource(source: ProgramSource | Lowered): source is HasFusionData {
  return typeof source === "object" && "data" in source && typeof source.data === "function";
}

function isList(source: Exclude<ProgramSource, HasFusionData>): source is readonly HostProgram[] {
  return Array.isArray(source);
}

function givenHosts(source: Exclude<ProgramSource, HasFusionData>, ranks: readonly number[]): readonly HostProgram[] {
  if (isList(source)) return source;
  return ranks.map((rank) => (typeof source === "function" ? source(rank) : source));
}

/** Inputs and outputs are bound by position, so all ranks must have the same tensor at each position. */
function requireSameSignature(first: HostProgram, host: HostProgram, rank: number): void {
  for (const side of ["inputs", "outputs"] as const) {
    const own = host[side].map((id) => at(host.tensors, id));
    const others = first[side].map((id) => at(first.tensors, id));
    if (own.length === others.length && own.every((tensor, i) => haveOneShape(tensor, at(others, i)))) continue;
    fail("host-programs-differ", `the host program of rank ${rank} has different ${side} than that of rank 0`, {
      place: { kind: "statement", text: print(host).trim().split("\n", 1).join("") },
      found: own.map((tensor) => shapeText(tensor)).join(", ") || "none",
      expected: others.map((tensor) => shapeText(tensor)).join(", ") || "none",
      help: "declare the same inputs and outputs, in the same order, for every rank",
    });
  }
}

/** Compares meshes apart from texts: every rank has the tensor, and a mesh of all ranks. */
function haveOneShape(a: Tensor, b: Tensor): boolean {
  if (a === b) return true;
  const meshes = a.mesh === null || b.mesh === null ? a.mesh === b.mesh : a.mesh.equals(b.mesh);
  return meshes && shapeText(a, false) === shapeText(b, false);
}

/** Names, numbers and memory may differ between ranks: a tensor is peer-visible only where peers access it. */
function shapeText(tensor: Tensor, withMesh = true): string {
  return printTensor(tensor, undefined, withMesh)
    .replace(/^T\d+_(?:sym|[lsgt])_/, "")
    .replaceAll(/([a-z?])(\w*?)\d+\{/gi, "$1$2{");
}

function wrongCount(found: number, devices: number): never {
  return fail("device-count", "there is not one host program per rank", {
    place: { kind: "call", text: "MultiDeviceExecutor.create(hostPrograms, { devices })" },
    found: `${found} host programs for ${devices} devices`,
    expected: `${devices}, one per rank, in order`,
    help: "pass one host program per device, one for all, or a function of the rank",
  });
}

/**
 * Throws `mesh-too-large` for the first mesh that names a device outside 0 to devices - 1. The suggested number of
 * devices fits all meshes.
 */
export function requireMeshDevices(tensors: readonly Tensor[], devices: number): void {
  const largest = (all: readonly Tensor[]): number =>
    all.reduce((most, { mesh }) => (mesh?.devices ?? []).reduce((a, b) => Math.max(a, b), most), -1);
  for (const tensor of tensors) {
    const beyond = largest([tensor]);
    if (beyond < devices) continue;
    const needed = largest(tensors) + 1;
    const diagnostic: Diagnostic = {
      code: "mesh-too-large",
      message: `the mesh of T${tensor.id} names device ${beyond}, but the run has ${devices}`,
      place: { kind: "tensor", text: printTensor(tensor) },
      found: `device ${beyond}`,
      expected: devices === 1 ? "device 0 only" : `devices 0 to ${devices - 1}`,
      help: `run on at least ${needed} devices (--devices ${needed}), or use a smaller mesh`,
    };
    throw new DiagnosticError([originated(diagnostic, tensors, true)]);
  }
}
