/**
 * Builds host programs by hand: every method appends one statement to the scope under way, and `build` checks the whole. Tensors are
 * the TensorViews of the Fusion API, with the same annotations; a tensor is local to the rank that runs the program as far as its
 * mesh and DID axes say.
 *
 *   const h = new HostProgramBuilder();
 *   const x = h.input([4, 8]);
 *   const y = h.tensor([4, 8]);
 *   h.output(y);
 *   h.forLoop(4, (i) => h.set(h.select(x, 0, i), { out: h.select(y, 0, i) }));
 *   const program = h.build();
 */
import { DiagnosticError, fail } from "../diagnostics/diagnostic.ts";
import { allocationSize } from "../ir/allocation-size.ts";
import { requireDType } from "../ir/api/fusion.ts";
import type { TensorView } from "../ir/api/tensor-view.ts";
import { type Call, call, type CallArgument, reject, resolveAxis } from "../ir/call.ts";
import type { FusionData } from "../ir/fusion-data.ts";
import {
  broadcastSpec,
  type OpSpec,
  permuteSpec,
  reductionSpec,
  reshapeSpec,
  selectSpec,
  sliceSpec,
  squeezeSpec,
} from "../ir/op-spec.ts";
import type { BinaryOpType, ReductionOpType, UnaryOpType } from "../ir/ops.ts";
import { printScalar } from "../ir/scalar-print.ts";
import type { DType } from "../numerics/dtype.ts";
import { makeId } from "../support/ids.ts";
import { at } from "../support/invariant.ts";
import {
  addCommunication,
  addEndCoalescing,
  type CommunicationOptions,
  makePeer,
  type PeerOptions,
  type SharedPeer,
} from "./builder-communication.ts";
import { aliasSelect, compute, type OutputOption } from "./builder-compute.ts";
import { addLoop, type LoopIndex, type LoopRange } from "./builder-loop.ts";
import { createScalarArithmetic, type ScalarArithmetic } from "./builder-scalars.ts";
import {
  append,
  type Awaitable,
  type BuilderState,
  collect,
  createBuilderState,
  ownId,
  requireRow,
  type ScalarLike,
  toScalar,
} from "./builder-state.ts";
import { addTensor, type AxisSpec, type TensorOptions } from "./builder-tensors.ts";
import { postUnit } from "./builder-units.ts";
import type {
  Communication,
  CommunicationType,
  EndCoalescing,
  HostProgram,
  HostStream,
  P2PCommunication,
  StreamId,
} from "./nodes.ts";
import { validateHostProgram } from "./validate.ts";

export class HostProgramBuilder {
  /** Index arithmetic, `rank` and `numberOfStreams`. */
  readonly scalars: ScalarArithmetic;
  readonly #state: BuilderState = createBuilderState();

  constructor() {
    this.scalars = createScalarArithmetic(this.#state);
  }

  /** The next input of the program. Throws `bad-extent`, `bad-argument`, and what the annotations throw. */
  input(extents: readonly AxisSpec[], options: TensorOptions = {}): TensorView {
    const tensor = addTensor(this.#state, "input", extents, options);
    this.#state.tensors.inputs.push(tensor.id);
    return tensor;
  }

  /** A tensor that the program allocates, computes or binds, or that `output` makes an output. Throws as `input`. */
  tensor(extents: readonly AxisSpec[], options: TensorOptions = {}): TensorView {
    return addTensor(this.#state, "tensor", extents, options);
  }

  /** Makes `tensor` the next output; an input may be one too. Throws `foreign-tensor`. */
  output(tensor: TensorView): void {
    this.#state.tensors.outputs.push(ownId(this.#state, tensor, call("output", { tensor: tensor.id })));
  }

  /** A stream: the one of the index's value, or without an index one of its own. */
  stream(index?: ScalarLike): HostStream {
    const { streams } = this.#state;
    const stream: HostStream = {
      id: makeId<StreamId>(streams.length),
      index: index === undefined ? null : toScalar(index),
    };
    streams.push(stream);
    return stream;
  }

  /** Binds a stream, a new one if none is given, to the current one. */
  getCurrentStream(stream: HostStream = this.stream()): HostStream {
    this.#appendStream("GetCurrentStream", "getCurrentStream", stream);
    return stream;
  }

  setCurrentStream(stream: HostStream): void {
    this.#appendStream("SetCurrentStream", "setCurrentStream", stream);
  }

  /** The current stream waits for all that `stream` holds now. */
  synchronize(stream: HostStream): void {
    this.#appendStream("Synchronize", "synchronize", stream);
  }

  /** Memory for `tensor`; nothing at run time where it is bound already. */
  allocate(tensor: TensorView, { zeroInit = false }: { readonly zeroInit?: boolean } = {}): TensorView {
    const id = ownId(this.#state, tensor, call("allocate", { tensor: tensor.id }));
    const memory = tensor.memoryType === "symmetric" ? "symmetric" : "global";
    append(this.#state, { kind: "Allocate", tensor: id, memory, size: allocationSize(tensor.data()), zeroInit });
    return tensor;
  }

  deallocate(tensor: TensorView): void {
    const id = ownId(this.#state, tensor, call("deallocate", { tensor: tensor.id }));
    append(this.#state, { kind: "Deallocate", tensor: id });
  }

  /** A loop over 0 .. stop-1, or over the range; `body` gets the index. */
  forLoop(range: ScalarLike | LoopRange, body: (index: LoopIndex) => void): void {
    addLoop(this.#state, range, body);
  }

  /** A branch of the host: `predicate` is true where it is not 0. */
  ifThenElse(predicate: ScalarLike, then: () => void, otherwise: () => void = () => {}): void {
    append(this.#state, {
      kind: "IfThenElse",
      predicate: toScalar(predicate),
      then: collect(this.#state, then),
      else: collect(this.#state, otherwise),
    });
  }

  /**
   * Binds a tensor to the view of `input` at `index` (HirAliasSelect). `axis` counts the logical domain with its reduced axes. A
   * new tensor keeps the input's annotations. Throws `axis-out-of-range`, `foreign-tensor`, `shape-mismatch`, `dtype-mismatch`.
   */
  select(input: TensorView, axis: number, index: ScalarLike, options: OutputOption = {}): TensorView {
    return aliasSelect(this.#state, input, axis, index, options);
  }

  /** Copies `input`; binds the output to it where the output has no memory. */
  set(input: TensorView, options: OutputOption = {}): TensorView {
    return this.#compute({ kind: "Set" }, "set", [input], options);
  }

  /** Elementwise. Operands have one dtype; axes of one element stretch. Throws `shape-mismatch`, `dtype-mismatch`. */
  add(a: TensorView, b: TensorView, options: OutputOption = {}): TensorView {
    return this.#binary("add", a, b, options);
  }

  /** As `add`. */
  sub(a: TensorView, b: TensorView, options: OutputOption = {}): TensorView {
    return this.#binary("sub", a, b, options);
  }

  /** As `add`. */
  mul(a: TensorView, b: TensorView, options: OutputOption = {}): TensorView {
    return this.#binary("mul", a, b, options);
  }

  /** As `add`. */
  div(a: TensorView, b: TensorView, options: OutputOption = {}): TensorView {
    return this.#binary("div", a, b, options);
  }

  /** `neg`, `abs`, `relu`, `gelu` or `exp` of every element. Throws `dtype-mismatch`. */
  unary(op: UnaryOpType, input: TensorView, options: OutputOption = {}): TensorView {
    return this.#compute({ kind: "Unary", op }, op, [input], options);
  }

  /** Converts to `dtype`. Throws `bad-argument`. */
  cast(input: TensorView, dtype: DType, options: OutputOption = {}): TensorView {
    const specOf = (place: Call): OpSpec => {
      requireDType(dtype, place);
      return { kind: "Cast", to: dtype };
    };
    return this.#apply("cast", input, [String(dtype)], specOf, options);
  }

  /** The sum over `axes`, which stay in the output's logical domain. Throws `axis-out-of-range`, `axis-repeated`, `bad-argument`. */
  sum(input: TensorView, axes: readonly number[], options: OutputOption = {}): TensorView {
    return this.#reduce("sum", input, axes, options);
  }

  /** As `sum`. */
  prod(input: TensorView, axes: readonly number[], options: OutputOption = {}): TensorView {
    return this.#reduce("prod", input, axes, options);
  }

  /** As `sum`: the largest element. */
  amax(input: TensorView, axes: readonly number[], options: OutputOption = {}): TensorView {
    return this.#reduce("amax", input, axes, options);
  }

  /** As `sum`: the smallest element. */
  amin(input: TensorView, axes: readonly number[], options: OutputOption = {}): TensorView {
    return this.#reduce("amin", input, axes, options);
  }

  /** As torch.matmul; the output keeps K as a reduced axis. Throws `shape-mismatch`, `dtype-mismatch`. */
  matmul(a: TensorView, b: TensorView, options: OutputOption = {}): TensorView {
    return this.#compute({ kind: "Matmul" }, "matmul", [a, b], options);
  }

  /** As torch.nn.functional.linear, with a weight [N, K]. Throws `shape-mismatch`, `dtype-mismatch`. */
  linear(x: TensorView, weight: TensorView, bias: TensorView | null = null, options: OutputOption = {}): TensorView {
    const operands = bias === null ? [x, weight] : [x, weight, bias];
    return this.#compute({ kind: "Linear" }, "linear", operands, options);
  }

  /** A new axis of one element for each true flag. Throws `bad-argument`. */
  broadcast(input: TensorView, flags: readonly boolean[], options: OutputOption = {}): TensorView {
    return this.#apply("broadcast", input, [flags], (place) => broadcastSpec(input.data(), flags, place), options);
  }

  /** Removes `axes` of one element. Throws `axis-out-of-range`, `axis-repeated`, `shape-mismatch`. */
  squeeze(input: TensorView, axes: readonly number[], options: OutputOption = {}): TensorView {
    return this.#apply("squeeze", input, [axes], (place) => squeezeSpec(input.data(), axes, place), options);
  }

  /** Axis i of the output is axis `order[i]`. Throws `axis-out-of-range`, `axis-repeated`, `bad-argument`. */
  permute(input: TensorView, order: readonly number[], options: OutputOption = {}): TensorView {
    return this.#apply("permute", input, [order], (place) => permuteSpec(input.data(), order, place), options);
  }

  /** The same elements in row-major order; -1 once for what is left over. Throws `bad-extent`, `bad-argument`, `shape-mismatch`. */
  reshape(input: TensorView, shape: readonly ScalarLike[], options: OutputOption = {}): TensorView {
    const shown = shape.map((extent) => (typeof extent === "number" ? extent : printScalar(extent)));
    return this.#apply("reshape", input, [shown], (place) => reshapeSpec(input.data(), shape, place), options);
  }

  /** `[starts[i], stops[i])` of every axis i. Throws `bad-argument`, `index-out-of-range`. */
  slice(
    input: TensorView,
    starts: readonly number[],
    stops: readonly number[],
    options: OutputOption = {},
  ): TensorView {
    const specOf = (place: Call): OpSpec => sliceSpec(input.data(), starts, stops, place);
    return this.#apply("slice", input, [starts, stops], specOf, options);
  }

  /** The op `select`, which copies where the output has memory. `axis` does not count reduced axes. Throws `axis-out-of-range`. */
  selectOp(input: TensorView, axis: number, index: ScalarLike, options: OutputOption = {}): TensorView {
    const specOf = (place: Call): OpSpec =>
      typeof index === "number"
        ? selectSpec(input.data(), axis, index, place)
        : { kind: "Select", axis: resolveAxis(axis, input.rank, place), index };
    const shown = { code: typeof index === "number" ? String(index) : printScalar(index) };
    return this.#apply("selectOp", input, [axis, shown], specOf, options);
  }

  /**
   * Runs a Fusion as one kernel. Its symbolic extents are those of `inputs`. Without `outputs`, new tensors like the Fusion's are
   * made and returned. Throws `foreign-tensor`.
   */
  postOnStream(
    fusion: { data(): FusionData },
    inputs: readonly TensorView[],
    outputs?: readonly TensorView[],
  ): readonly TensorView[] {
    return postUnit(this.#state, fusion.data(), inputs, outputs);
  }

  /** Posts a communication. Throws `foreign-tensor`. */
  communication(type: CommunicationType, options: CommunicationOptions): Communication {
    return addCommunication(this.#state, type, options);
  }

  /** Posts a send of `buffer` to a device. Throws `foreign-tensor`. */
  send(buffer: TensorView, options: PeerOptions): P2PCommunication {
    return this.post(makePeer(this.#state, "send", buffer, options));
  }

  /** Posts a receive into `buffer` from a device. Throws `foreign-tensor`. */
  recv(buffer: TensorView, options: PeerOptions): P2PCommunication {
    return this.post(makePeer(this.#state, "recv", buffer, options));
  }

  /** Shares the handles of one-sided sends and receives (backend cuda), which `post` then posts. Throws `foreign-tensor`. */
  shareMemHandles(...peers: readonly SharedPeer[]): readonly P2PCommunication[] {
    const communications = peers.map(({ type, buffer, peer }) =>
      makePeer(this.#state, type, buffer, { peer, backend: "cuda" }),
    );
    append(this.#state, { kind: "ShareMemHandles", communications });
    return communications;
  }

  /** Posts a communication, once more or for the first time. Throws `bad-argument` for one of another builder. */
  post<C extends Communication | P2PCommunication>(communication: C): C {
    requireRow<Awaitable>(this.#state.awaitables, communication, "communication", call("post"));
    append(this.#state, communication);
    return communication;
  }

  startCoalescing(): void {
    append(this.#state, { kind: "StartCoalescing" });
  }

  /** Ends the group; wait for what it returns. */
  endCoalescing(): EndCoalescing {
    return addEndCoalescing(this.#state);
  }

  /** The current stream waits for the latest post of `posted`. Throws `bad-argument` for one of another builder. */
  wait(posted: Awaitable): void {
    requireRow<Awaitable>(this.#state.awaitables, posted, "communication", call("wait"));
    append(this.#state, { kind: "Wait", target: posted.id });
  }

  /** The program as it is now. Throws what `validateHostProgram` finds. */
  build(): HostProgram {
    const { tensors, streams, units, awaitables, scopes } = this.#state;
    if (scopes.length > 1) {
      reject(call("build"), {
        code: "bad-argument",
        message: "the program is built inside a loop or branch",
        found: "build() in the body of forLoop or ifThenElse",
        expected: "build() after the last statement",
        help: "call build() outside",
      });
    }
    requireNoFusionOps(this.#state);
    const program: HostProgram = {
      kind: "HostProgram",
      tensors: [...tensors.tensors],
      inputs: [...tensors.inputs],
      outputs: [...tensors.outputs],
      streams: [...streams],
      units: [...units],
      body: [...at(scopes, 0)],
      iterDomainCount: tensors.iterDomainCount,
      scalarCount: tensors.scalarCount,
      exprCount: awaitables.length,
    };
    const findings = validateHostProgram(program);
    if (findings.length > 0) throw new DiagnosticError(findings);
    return program;
  }

  #compute(spec: OpSpec, name: string, operands: readonly TensorView[], options: OutputOption): TensorView {
    return compute(this.#state, () => spec, name, operands, [], options);
  }

  #binary(op: BinaryOpType, a: TensorView, b: TensorView, options: OutputOption): TensorView {
    return this.#compute({ kind: "Binary", op }, op, [a, b], options);
  }

  #reduce(op: ReductionOpType, input: TensorView, axes: readonly number[], options: OutputOption): TensorView {
    return this.#apply(op, input, [axes], (place) => reductionSpec(op, input.data(), axes, place), options);
  }

  /** An op over one operand, from the call's arguments. */
  #apply(
    name: string,
    input: TensorView,
    args: readonly CallArgument[],
    specOf: (place: Call) => OpSpec,
    options: OutputOption,
  ): TensorView {
    return compute(this.#state, specOf, name, [input], args, options);
  }

  #appendStream(
    kind: "GetCurrentStream" | "SetCurrentStream" | "Synchronize",
    method: string,
    stream: HostStream,
  ): void {
    requireRow(this.#state.streams, stream, "stream", call(method));
    append(this.#state, { kind, stream: stream.id });
  }
}

/** The free functions `add(a, b)` of the Fusion API take the same handles, but append to a Fusion. */
function requireNoFusionOps({ tensors: { ops } }: BuilderState): void {
  const [first] = ops;
  if (first === undefined) return;
  fail({
    code: "bad-argument",
    message: "an op of the Fusion API was called with a tensor of a HostProgramBuilder",
    place: { kind: "call", text: "build()" },
    found: `T${first.output} = ${first.kind}(${first.inputs.map((id) => `T${id}`).join(", ")})`,
    expected: "computations by the builder's own methods",
    help: "call builder.add(a, b) instead of add(a, b), or put the op into a Fusion and post it with postOnStream",
  });
}
