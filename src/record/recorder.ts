/**
 * The state of one recording: the host program, the values of its names, and the tables that it fills. It exists for
 * one call of `record`.
 */
import type { DiagnosticDetails, GivenDiagnostic } from "../diagnostics/diagnostic.ts";
import type { WaitPeer, WaitRank } from "../commands/command-list.ts";
import type { CommandStreamId, EventId, KernelId } from "../commands/command.ts";
import type { Operand } from "../commands/kernel.ts";
import type { View } from "../commands/view.ts";
import { agreed, UnlikeError } from "../host/alike/classes.ts";
import type { CommunicatorBackend, OneSidedProtocol } from "../host/collectives.ts";
import type { ExprId, HostProgram, Statement, TeamCommunication } from "../host/nodes.ts";
import type { Tensor, TensorId } from "../ir/domain.ts";
import { evaluateScalar, printScalar, type Scalar } from "../ir/scalar/scalar.ts";
import { sizesFromMeshes } from "../ir/sizes.ts";
import type { Actual, ExchangePlan } from "./actual-sizes.ts";
import { type Alike, rankNames, type RankPointToPoint, valuesOn } from "./alike/alike.ts";
import type { Common } from "./common.ts";
import type { LocalLayout, SizeOf } from "./local-layout.ts";
import { type Allocator, createRankMemory, type Held, hold, letGo, type RankMemory } from "./memory.ts";
import { type Communicator, type CommunicatorModel, createStreams, type Streams } from "./streams.ts";
import { createTape, currentRegion, failHere, type Tape } from "./tape.ts";

/** The inputs of a recording besides the host program. src/compile sets defaults and checks them. */
export interface RecorderOptions {
  /** The device whose commands are recorded. */
  readonly rank: number;
  /** Sizes of symbolic extents by printed name (`i0`). A sharded axis takes its size from the mesh if none is given. */
  readonly sizes: ReadonlyMap<string, number>;
  /** Values of the other scalars that the program names. */
  readonly scalars: ReadonlyMap<string, number>;
  /** The value of the program's `numberOfStreams`: the worker streams that a Stream loop alternates over. */
  readonly streams: number;
  /** Which side copies in one-sided point-to-point: the receiver (get) or the sender (put). */
  readonly protocol: OneSidedProtocol;
  /** Instead of `protocol`: by region. */
  readonly protocols?: readonly (OneSidedProtocol | undefined)[];
  readonly allocator: Allocator;
  readonly communicators: CommunicatorModel;
  /** The number of ranks; null if unknown. */
  readonly devices: number | null;
}

export interface Recorder {
  readonly program: HostProgram;
  /** Without a rank, several are recorded at once: `recordedRank`. */
  readonly options: Omit<RecorderOptions, "rank"> & { readonly rank: number | null };
  /** The ranks that are recorded at once, without knowing which; null if it is one. */
  readonly alike: Alike | null;
  readonly common: Common;
  readonly tape: Tape;
  readonly streams: Streams;
  readonly memory: RankMemory;
  /** Sizes of extents, which never change. */
  readonly sizeOf: SizeOf;
  /** The current indices of the enclosing loops. */
  readonly indices: Map<string, number>;
  readonly layouts: Map<Tensor, LocalLayout>;
  /** The declared extents over all devices. */
  readonly extents: Map<Tensor, readonly number[]>;
  /** The tensors that are, or come from, chunks of an axis. */
  readonly actuals: Map<TensorId, Actual>;
  /** Iterations of all loops so far. */
  iterations: number;
  /** The pieces that all ranks have received in exchanges so far, if each receives as many as this one. */
  pieces: number;
  /** The latest post of each communication. */
  readonly posts: Map<ExprId, Post>;
  /** What the library of each communication keeps until the Wait for it. */
  readonly held: Map<ExprId, Held>;
  /** The open coalesced group. */
  group: { readonly op: RankPointToPoint; readonly buffer: TensorId }[] | null;
  /** For each one-sided send and receive, what the latest ShareMemHandles shared. */
  readonly shared: Map<ExprId, SharedHandle>;
  /** For each peer, the number of one-sided sends to it and receives from it so far. */
  readonly sequences: Map<string, number>;
  readonly kernels: KernelCache;
  /** The communicator of all ranks, by library. */
  readonly worlds: Map<CommunicatorBackend, Communicator>;
  /** How communications of tensors with declared sizes move their elements. */
  readonly plans: Map<Statement, ExchangePlan | null>;
}

/** A buffer whose handle a peer has. */
export interface SharedHandle {
  /** One for each rank that is recorded at once. */
  readonly peers: readonly number[];
  readonly view: View;
}

/** Kernels by structure, and each statement's last kernel, which the next iteration usually needs again. */
export interface KernelCache {
  readonly byText: Map<string, KernelId>;
  readonly last: Map<Statement, LastKernel>;
}

export interface LastKernel {
  readonly inputs: readonly Operand[];
  readonly outputs: readonly Operand[];
  readonly kernel: KernelId;
}

export function createRecorder(
  program: HostProgram,
  options: Recorder["options"],
  common: Common,
  alike: Alike | null,
): Recorder {
  const { sizes, scalars, streams } = options;
  const values = new Map([
    ...sizesFromMeshes(program.tensors),
    ...sizes,
    ...scalars,
    ["numberOfStreams", streams] as const,
  ]);
  const tape = createTape(program, common, alike);
  return {
    program,
    options,
    alike,
    common,
    tape,
    streams: createStreams(tape, alike),
    memory: createRankMemory(tape, options.allocator),
    sizeOf: (name) => (rankNames.has(name) ? recordedRank({ options }) : values.get(name)),
    indices: new Map(),
    layouts: new Map(),
    extents: new Map(),
    actuals: new Map(),
    iterations: 0,
    pieces: 0,
    posts: new Map(),
    held: new Map(),
    group: null,
    shared: new Map(),
    sequences: new Map(),
    kernels: { byText: new Map(), last: new Map() },
    worlds: new Map(),
    plans: new Map(),
  };
}

/** The protocol of the statement that is being recorded. */
export function currentProtocol({ tape, options }: Recorder): OneSidedProtocol {
  return options.protocols?.[currentRegion(tape) ?? -1] ?? options.protocol;
}

export function failRecording(
  { tape, options }: Recorder,
  ...fault: GivenDiagnostic<Omit<DiagnosticDetails, "place">>
): never {
  return failHere(tape, recordedRank({ options }), ...fault);
}

/** The value of an index, peer, bound or predicate. Throws `scalar-missing` and `scalar-invalid`. */
export function evaluate(recorder: Recorder, scalar: Scalar, sizeOf = recorder.sizeOf): number {
  if (scalar.kind === "constant" && Number.isSafeInteger(scalar.value)) return scalar.value;
  if (recorder.alike !== null) return agreed(evaluateEach(recorder, scalar, sizeOf));
  const missing: string[] = [];
  const value = evaluateScalar(scalar, (name) => {
    const known = recorder.indices.get(name) ?? sizeOf(name);
    if (known === undefined) missing.push(name);
    return known;
  });
  if (value === undefined) {
    const names = [...new Set(missing)].join(", ");
    return failRecording(recorder, "scalar-missing", `${names} has no value`, {
      found: `${printScalar(scalar)} with no value for ${names}`,
      expected: "a loop index in its loop, an extent, rank, numberOfStreams, or a scalar passed in the call",
      help: `pass { scalars: { ${names}: ... } } (--scalar ${names}=VALUE), or correct the name`,
    });
  }
  // In JavaScript 0 * -1 is -0. It prints as 0 but is a different key.
  if (Number.isSafeInteger(value)) return value === 0 ? 0 : value;
  return failRecording(recorder, "scalar-invalid", "the value of a scalar expression is not a whole number", {
    found: `${printScalar(scalar)} is ${value}`,
    expected: "a whole number",
    help: "do not divide by 0, and keep numbers below 2^53",
  });
}

/** The value on each rank that is recorded at once: one, if that is one. Throws what `evaluate` throws. */
export function evaluateEach(recorder: Recorder, scalar: Scalar, sizeOf = recorder.sizeOf): readonly number[] {
  const { alike, indices } = recorder;
  if (alike === null) return [evaluate(recorder, scalar, sizeOf)];
  return valuesOn(alike, scalar, (name) => {
    return indices.get(name) ?? (rankNames.has(name) ? (rank) => rank : sizeOf(name));
  });
}

/** How the latest post of a communication completes, for the Wait that follows it. */
export type Post =
  /** A Wait has been recorded for it, and only one is allowed. */
  | { readonly kind: "awaited" }
  /** This rank takes no part. */
  | { readonly kind: "nothing" }
  /** A library's transfer completes with the event. */
  | { readonly kind: "event"; readonly event: EventId }
  /**
   * One-sided: completes once peers have signalled and `stream` is done. `stream` is null if this rank only signals.
   */
  | { readonly kind: "signals"; readonly stream: CommandStreamId | null; readonly signals: readonly AwaitedSignal[] }
  /**
   * Completes with the work of the stream: there is no peer to wait for, or an earlier Wait on that stream took the
   * signals.
   */
  | { readonly kind: "stream"; readonly stream: CommandStreamId };

/** A signal that the Wait waits for on the stream that is then current. */
export type AwaitedSignal =
  Omit<WaitPeer, "stream"> | (Omit<WaitRank, "stream"> & { readonly positions: readonly number[] });

/**
 * Notes how a communication of `tensors` completes. A library keeps them until the Wait; without one, PyTorch keeps
 * them until they have been transferred.
 */
export function setPost(recorder: Recorder, id: ExprId, post: Post, tensors: readonly TensorId[]): void {
  const { posts, held, memory, options, streams } = recorder;
  if (options.allocator === "braid") letGo(memory, held.get(id) ?? [], streams.current);
  posts.set(id, post);
  held.set(id, post.kind === "event" ? hold(memory, tensors) : []);
}

/** The ranks that are recorded. */
export function ranksOf({ alike, options }: Pick<Recorder, "alike" | "options">): readonly number[] {
  return alike?.ranks ?? [recordedRank({ options })];
}

/** The rank that is recorded. Throws UnlikeError where several are at once, of which none is meant. */
export function recordedRank({ options }: Pick<Recorder, "options">): number {
  if (options.rank === null) throw new UnlikeError(null);
  return options.rank;
}

/** The team of a statement on each rank that is recorded. */
export function recordedTeams(
  { alike }: Pick<Recorder, "alike">,
  { team }: Pick<TeamCommunication, "team">,
): readonly (readonly number[])[] {
  const teamOn = alike?.rules?.teams.get(team);
  return alike === null || teamOn === undefined ? [team] : alike.ranks.map(teamOn);
}
