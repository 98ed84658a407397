/**
 * Builds host programs by hand: each method appends one statement to the current scope, and `build` checks the program.
 * Tensors are the TensorViews of the Fusion API, with the same annotations. A tensor is local to the rank that runs the
 * program, except as its mesh and DID axes say.
 *
 *   const h = new HostProgramBuilder();
 *   const x = h.input([4, 8]);
 *   const y = h.tensor([4, 8]);
 *   h.output(y);
 *   h.forLoop(4, (i) => h.set(h.select(x, 0, i), { out: h.select(y, 0, i) }));
 *   const program = h.build();
 */
import { requireOneOf } from "../../diagnostics/arguments.ts";
import { DiagnosticError } from "../../diagnostics/diagnostic.ts";
import { resolveMarks } from "../../ir/api/fusion-builder.ts";
import { argumentOf, requireTensor } from "../../ir/api/handle.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { allocationSize, type TensorId } from "../../ir/domain.ts";
import { call } from "../../ir/ops/call.ts";
import { constant, type Scalar, binary, named, type ScalarOp } from "../../ir/scalar/scalar.ts";
import { makeId, at, invariant, keysOf } from "../../support/invariant.ts";
import { backendNames, collectives, type CommunicationType, reduceOpNames } from "../collectives.ts";
import type {
  Communication,
  EndCoalescing,
  ExprId,
  HostProgram,
  HostStream,
  P2PCommunication,
  StreamId,
} from "../nodes.ts";
import { validateHostProgram } from "../validate/validate.ts";
import { HostComputations } from "./computations.ts";
import type {
  Awaitable,
  AxisSpec,
  CommunicationOptions,
  LoopIndex,
  LoopRange,
  PeerOptions,
  ScalarLike,
  SharedPeer,
  TensorOptions,
} from "./options.ts";
import {
  addBuiltTensor,
  append,
  callsOf,
  collect,
  nextName,
  ownId,
  requireBuildable,
  requireRow,
  toScalar,
  type BuilderState,
} from "./state.ts";

/** Builds one rank's HostProgram, statement by statement; `build` validates the whole. */
export class HostProgramBuilder extends HostComputations {
  /** Index arithmetic, `rank` and `numberOfStreams`. */
  readonly scalars: ScalarArithmetic = createScalarArithmetic(this.state);

  /** The next input of the program. Throws `bad-extent`, `bad-argument`, and any error of the annotations. */
  input(extents: readonly AxisSpec[], options: TensorOptions = {}): TensorView {
    const tensor = addBuiltTensor(this.state, "input", extents, options);
    this.state.tensors.inputs.push(tensor.id);
    return tensor;
  }

  /** Declares a tensor that the program allocates, computes, binds, or makes an output. Throws the same as `input`. */
  tensor(extents: readonly AxisSpec[], options: TensorOptions = {}): TensorView {
    return addBuiltTensor(this.state, "tensor", extents, options);
  }

  /** Makes `tensor` the next output. It may be an input, too. Throws `foreign-tensor`. */
  output(tensor: TensorView): void {
    this.state.tensors.outputs.push(this.#own("output", tensor));
  }

  /** Allocates `tensor`. At run time it does nothing if the tensor is already bound. Throws `foreign-tensor`. */
  allocate(tensor: TensorView, { zeroInit = false }: { readonly zeroInit?: boolean } = {}): TensorView {
    const id = this.#own("allocate", tensor);
    const memory = tensor.memoryType === "symmetric" ? "symmetric" : "global";
    append(this.state, {
      kind: "Allocate",
      tensor: id,
      memory,
      size: allocationSize(tensor.data()),
      zeroInit,
      fresh: false,
    });
    return tensor;
  }

  /** Frees the memory of `tensor`. Throws `foreign-tensor`. */
  deallocate(tensor: TensorView): void {
    append(this.state, {
      kind: "Deallocate",
      tensor: this.#own("deallocate", tensor),
    });
  }

  /** The stream of the value of `index` at run time; a new stream if there is no index. */
  stream(index?: ScalarLike): HostStream {
    const { streams } = this.state;
    const id = makeId<StreamId>(streams.length);
    const stream: HostStream = { id, index: index === undefined ? null : toScalar(index) };
    streams.push(stream);
    return stream;
  }

  /** Binds `stream`, or a new stream, to the current one. Throws `bad-argument` for a stream of another builder. */
  getCurrentStream(stream: HostStream = this.stream()): HostStream {
    requireRow(this.state.streams, stream, "stream", call("getCurrentStream"));
    append(this.state, { kind: "GetCurrentStream", stream: stream.id });
    return stream;
  }

  /** Later statements run on `stream`. Throws `bad-argument` for a stream of another builder. */
  setCurrentStream(stream: HostStream): void {
    requireRow(this.state.streams, stream, "stream", call("setCurrentStream"));
    append(this.state, { kind: "SetCurrentStream", stream: stream.id });
  }

  /**
   * The current stream waits for all work on `stream` so far. Throws `bad-argument` for a stream of another builder.
   */
  synchronize(stream: HostStream): void {
    requireRow(this.state.streams, stream, "stream", call("synchronize"));
    append(this.state, { kind: "Synchronize", stream: stream.id });
  }

  /** A loop over 0 .. range-1, or over a range with a start, a stop, a step or an axis. `body` gets the index. */
  forLoop(range: ScalarLike | LoopRange, body: (index: LoopIndex) => void): void {
    const steps: LoopRange = isRange(range) ? range : { stop: range };
    const { start = 0, step = 1, over } = steps;
    const index: LoopIndex =
      over === undefined ? { kind: "symbol", name: nextName(this.state) } : { kind: "named", name: "streamIdx" };
    append(this.state, {
      kind: "ForLoop",
      iterDomain: over?.data() ?? null,
      index,
      start: toScalar(start),
      stop: stopOf(steps),
      step: constant(step),
      body: collect(this.state, () => {
        body(index);
      }),
    });
  }

  /** A branch of the host, which takes `then` if `predicate` is not 0. */
  ifThenElse(predicate: ScalarLike, then: () => void, otherwise: () => void = () => {}): void {
    append(this.state, {
      kind: "IfThenElse",
      predicate: toScalar(predicate),
      then: collect(this.state, then),
      else: collect(this.state, otherwise),
    });
  }

  /** Posts a communication on the current stream. Throws `foreign-tensor`, `bad-argument`. */
  communication(
    type: CommunicationType,
    { input, output, team, root, reduceOp, backend = "nccl" }: CommunicationOptions,
  ): Communication {
    for (const [operand, tensor] of [input, output].entries()) requireTensor(tensor, "communication", operand);
    const place = call("communication", type, ...[input, output].map((each) => argumentOf(each, this.state.tensors)));
    requireOneOf(keysOf(collectives), type, "a type of communication", place);
    if (reduceOp !== undefined) requireOneOf(keysOf(reduceOpNames), reduceOp, "a reduction op", place);
    requireOneOf(keysOf(backendNames), backend, "a communicator backend", place);
    return this.post(
      this.#numbered({
        kind: "Communication",
        id: this.#nextId(),
        type,
        team: team ?? input.mesh?.devices ?? [],
        root: root === undefined ? null : toScalar(root),
        reduceOp: reduceOp ?? (collectives[type].reduces ? "sum" : null),
        input: ownId(this.state, input, place),
        output: ownId(this.state, output, place),
        backend,
      }),
    );
  }

  /** Posts a send of `buffer` to a device. Throws `foreign-tensor`, `bad-argument`. */
  send(buffer: TensorView, options: PeerOptions): P2PCommunication {
    return this.post(this.#peer("send", buffer, options));
  }

  /** Posts a receive into `buffer` from a device. Throws `foreign-tensor`, `bad-argument`. */
  recv(buffer: TensorView, options: PeerOptions): P2PCommunication {
    return this.post(this.#peer("recv", buffer, options));
  }

  /**
   * Shares the memory handles of one-sided sends and receives (backend cuda) and returns them for `post`.
   * Throws `foreign-tensor`, `bad-argument`.
   */
  shareMemHandles(...peers: readonly SharedPeer[]): readonly P2PCommunication[] {
    const communications = peers.map(({ type, buffer, peer }) => this.#peer(type, buffer, { peer, backend: "cuda" }));
    append(this.state, { kind: "ShareMemHandles", communications });
    return communications;
  }

  /**
   * Posts a communication, for the first time or again. Throws `bad-argument` for a communication of another builder.
   */
  post<C extends Communication | P2PCommunication>(communication: C): C {
    requireRow<Awaitable>(this.state.awaitables, communication, "communication", call("post"));
    append(this.state, communication);
    return communication;
  }

  /** Begins a group of sends and receives that complete together. */
  startCoalescing(): void {
    append(this.state, { kind: "StartCoalescing" });
  }

  /** Ends the group and returns the value to wait for. */
  endCoalescing(): EndCoalescing {
    const end = this.#numbered({ kind: "EndCoalescing", id: this.#nextId() });
    append(this.state, end);
    return end;
  }

  /** The current stream waits for the latest post of `posted`. Throws `bad-argument` for one of another builder. */
  wait(posted: Awaitable): void {
    requireRow<Awaitable>(this.state.awaitables, posted, "communication", call("wait"));
    append(this.state, { kind: "Wait", target: posted.id });
  }

  /** Throws `foreign-tensor`, `bad-argument`. */
  #own(method: string, tensor: TensorView): TensorId {
    requireTensor(tensor, method, 0);
    return ownId(this.state, tensor, call(method, argumentOf(tensor, this.state.tensors)));
  }

  /** A send or receive that is not posted yet. */
  #peer(type: "send" | "recv", buffer: TensorView, { peer, backend = "nccl" }: PeerOptions): P2PCommunication {
    requireTensor(buffer, type, 0);
    const place = call(type, argumentOf(buffer, this.state.tensors));
    requireOneOf(["send", "recv"], type, "a type of point-to-point communication", place);
    requireOneOf(keysOf(backendNames), backend, "a communicator backend", place);
    return this.#numbered({
      kind: "P2PCommunication",
      id: this.#nextId(),
      type,
      buffer: ownId(this.state, buffer, place),
      peer: toScalar(peer),
      backend,
    });
  }

  #nextId(): ExprId {
    return makeId<ExprId>(this.state.awaitables.length);
  }

  /** Enters a communication that has the next id. */
  #numbered<A extends Awaitable>(awaitable: A): A {
    this.state.awaitables.push(awaitable);
    return awaitable;
  }

  /**
   * Returns the validated program. Throws `bad-argument` inside a loop or branch, or if an op of the Fusion API was
   * called with a tensor of this builder. Throws the findings of `validateHostProgram` otherwise.
   */
  build(): HostProgram {
    const { tensors, streams, units, awaitables, scopes } = this.state;
    resolveMarks(tensors);
    requireBuildable(this.state);
    const body = [...at(scopes, 0)];
    const calls = callsOf(this.state, body);
    const program: HostProgram = {
      kind: "HostProgram",
      tensors: [...tensors.tensors],
      inputs: [...tensors.inputs],
      outputs: [...tensors.outputs],
      streams: [...streams],
      units: [...units],
      body,
      ...(calls.some((site) => site !== null) ? { calls } : {}),
      iterDomainCount: tensors.iterDomainCount,
      scalarCount: tensors.scalarCount,
      exprCount: awaitables.length,
    };
    const findings = validateHostProgram(program);
    if (findings.length > 0) throw new DiagnosticError(findings);
    return program;
  }
}

function isRange(range: ScalarLike | LoopRange): range is LoopRange {
  return typeof range === "object" && !("kind" in range);
}

function stopOf({ stop, over }: LoopRange): Scalar {
  if (stop !== undefined) return toScalar(stop);
  invariant(over !== undefined, "a loop has a stop or an axis");
  return over.extent;
}

type Combine = (lhs: ScalarLike, rhs: ScalarLike) => Scalar;

/** `div` truncates toward zero and `mod` takes the sign of the dividend, as in C; comparisons give 0 or 1. */
export interface ScalarArithmetic extends Readonly<Record<ScalarOp, Combine>> {
  /** The device that runs the program. */
  readonly rank: Scalar;
  /** The number of streams that the run asks for. */
  readonly numberOfStreams: Scalar;
  /** A value that the run binds by this name: a loop's index, or one of `record`'s `scalars`. */
  readonly named: (name: string) => Scalar;
}

/**
 * Index arithmetic for hand-written host programs. As in nvFuser nothing is folded, and every result takes a name
 * (`i84`). Slice indices and peers print by name; elsewhere the expression prints in full.
 */
function createScalarArithmetic(state: BuilderState): ScalarArithmetic {
  const combine =
    (op: ScalarOp): Combine =>
    (lhs, rhs) =>
      binary(op, toScalar(lhs), toScalar(rhs), nextName(state));
  return {
    rank: named("rank"),
    numberOfStreams: named("numberOfStreams"),
    named,
    add: combine("add"),
    sub: combine("sub"),
    mul: combine("mul"),
    div: combine("div"),
    mod: combine("mod"),
    ceilDiv: combine("ceilDiv"),
    min: combine("min"),
    eq: combine("eq"),
    ne: combine("ne"),
    lt: combine("lt"),
    le: combine("le"),
    gt: combine("gt"),
    ge: combine("ge"),
    and: combine("and"),
    or: combine("or"),
  };
}
