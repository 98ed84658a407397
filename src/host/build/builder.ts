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
import { allocationSize } from "../../ir/domain.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { call } from "../../ir/ops/call.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { UnaryOpType } from "../../ir/ops/op.ts";
import type { DType } from "../../numerics/dtype.ts";
import {
  addCommunication,
  addEndCoalescing,
  addPost,
  addWait,
  type CommunicationOptions,
  makePeer,
  type PeerOptions,
  shareHandles,
  type SharedPeer,
} from "./communication.ts";
import { aliasSelect, type OutputOption } from "./compute.ts";
import { addLoop, type LoopIndex, type LoopRange } from "./loop.ts";
import {
  addBinary,
  addBroadcast,
  addCast,
  addContraction,
  addOp,
  type ContractionOptions,
  addPermute,
  addReduction,
  addReshape,
  addSelect,
  addSlice,
  addSqueeze,
} from "./ops.ts";
import { programOf } from "./finish.ts";
import { createScalarArithmetic, type ScalarArithmetic } from "./scalars.ts";
import {
  append,
  type Awaitable,
  type BuilderState,
  collect,
  createBuilderState,
  ownId,
  type ScalarLike,
  toScalar,
} from "./state.ts";
import { addStream, addStreamStatement } from "./streams.ts";
import { addTensor, type AxisSpec, type TensorOptions } from "./tensors.ts";
import { postUnit } from "./units.ts";
import type { Communication, EndCoalescing, HostProgram, HostStream, P2PCommunication } from "../nodes.ts";
import type { CommunicationType } from "../collectives.ts";

/** Builds one rank's HostProgram, statement by statement; `build` validates the whole. */
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
    return addStream(this.#state, index);
  }

  /** Binds a stream, a new one if none is given, to the current one. */
  getCurrentStream(stream: HostStream = this.stream()): HostStream {
    addStreamStatement(this.#state, "getCurrentStream", stream);
    return stream;
  }

  setCurrentStream(stream: HostStream): void {
    addStreamStatement(this.#state, "setCurrentStream", stream);
  }

  /** The current stream waits for all that `stream` holds now. */
  synchronize(stream: HostStream): void {
    addStreamStatement(this.#state, "synchronize", stream);
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
    return addOp(this.#state, "set", { kind: "Set" }, [input], options);
  }

  /** Elementwise. Operands have one dtype; axes of one element stretch. Throws `shape-mismatch`, `dtype-mismatch`. */
  add(a: TensorView, b: TensorView, options: OutputOption = {}): TensorView {
    return addBinary(this.#state, "add", [a, b], options);
  }

  /** As `add`. */
  sub(a: TensorView, b: TensorView, options: OutputOption = {}): TensorView {
    return addBinary(this.#state, "sub", [a, b], options);
  }

  /** As `add`. */
  mul(a: TensorView, b: TensorView, options: OutputOption = {}): TensorView {
    return addBinary(this.#state, "mul", [a, b], options);
  }

  /** As `add`. */
  div(a: TensorView, b: TensorView, options: OutputOption = {}): TensorView {
    return addBinary(this.#state, "div", [a, b], options);
  }

  /** A function, such as `relu`, of every element. Throws `dtype-mismatch`. */
  unary(op: UnaryOpType, input: TensorView, options: OutputOption = {}): TensorView {
    return addOp(this.#state, op, { kind: "Unary", op }, [input], options);
  }

  /** Converts to `dtype`. Throws `bad-argument`. */
  cast(input: TensorView, dtype: DType, options: OutputOption = {}): TensorView {
    return addCast(this.#state, input, dtype, options);
  }

  /** The sum over `axes`, which stay in the output's logical domain. Throws `axis-out-of-range`, `axis-repeated`, `bad-argument`. */
  sum(input: TensorView, axes: readonly number[], options: OutputOption = {}): TensorView {
    return addReduction(this.#state, "sum", input, axes, options);
  }

  /** As `sum`. */
  prod(input: TensorView, axes: readonly number[], options: OutputOption = {}): TensorView {
    return addReduction(this.#state, "prod", input, axes, options);
  }

  /** As `sum`: the largest element. */
  amax(input: TensorView, axes: readonly number[], options: OutputOption = {}): TensorView {
    return addReduction(this.#state, "amax", input, axes, options);
  }

  /** As `sum`: the smallest element. */
  amin(input: TensorView, axes: readonly number[], options: OutputOption = {}): TensorView {
    return addReduction(this.#state, "amin", input, axes, options);
  }

  /**
   * As torch.matmul; the output keeps K as a reduced axis. With `accumulate` the product is added to `out` (torch.addmm's beta = 1).
   * Throws `shape-mismatch`, `dtype-mismatch`, `bad-argument`.
   */
  matmul(a: TensorView, b: TensorView, options: ContractionOptions = {}): TensorView {
    return addContraction(this.#state, "Matmul", [a, b], options);
  }

  /** As torch.nn.functional.linear, with a weight [N, K]; `accumulate` as in matmul. Throws what matmul throws. */
  linear(
    x: TensorView,
    weight: TensorView,
    bias: TensorView | null = null,
    options: ContractionOptions = {},
  ): TensorView {
    const operands = bias === null ? [x, weight] : [x, weight, bias];
    return addContraction(this.#state, "Linear", operands, options);
  }

  /** A new axis of one element for each true flag. Throws `bad-argument`. */
  broadcast(input: TensorView, flags: readonly boolean[], options: OutputOption = {}): TensorView {
    return addBroadcast(this.#state, input, flags, options);
  }

  /** Removes `axes` of one element. Throws `axis-out-of-range`, `axis-repeated`, `shape-mismatch`. */
  squeeze(input: TensorView, axes: readonly number[], options: OutputOption = {}): TensorView {
    return addSqueeze(this.#state, input, axes, options);
  }

  /** Axis i of the output is axis `order[i]`. Throws `axis-out-of-range`, `axis-repeated`, `bad-argument`. */
  permute(input: TensorView, order: readonly number[], options: OutputOption = {}): TensorView {
    return addPermute(this.#state, input, order, options);
  }

  /** The same elements in row-major order; -1 once for what is left over. Throws `bad-extent`, `bad-argument`, `shape-mismatch`. */
  reshape(input: TensorView, shape: readonly ScalarLike[], options: OutputOption = {}): TensorView {
    return addReshape(this.#state, input, shape, options);
  }

  /** `[starts[i], stops[i])` of every axis i. Throws `bad-argument`, `index-out-of-range`. */
  slice(
    input: TensorView,
    starts: readonly number[],
    stops: readonly number[],
    options: OutputOption = {},
  ): TensorView {
    return addSlice(this.#state, input, starts, stops, options);
  }

  /** The op `select`, which copies where the output has memory. `axis` does not count reduced axes. Throws `axis-out-of-range`. */
  selectOp(input: TensorView, axis: number, index: ScalarLike, options: OutputOption = {}): TensorView {
    return addSelect(this.#state, input, axis, index, options);
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

  /** Posts a communication. Throws `foreign-tensor`, `bad-argument`. */
  communication(type: CommunicationType, options: CommunicationOptions): Communication {
    return addCommunication(this.#state, type, options);
  }

  /** Posts a send of `buffer` to a device. Throws `foreign-tensor`, `bad-argument`. */
  send(buffer: TensorView, options: PeerOptions): P2PCommunication {
    return this.post(makePeer(this.#state, "send", buffer, options));
  }

  /** Posts a receive into `buffer` from a device. Throws `foreign-tensor`, `bad-argument`. */
  recv(buffer: TensorView, options: PeerOptions): P2PCommunication {
    return this.post(makePeer(this.#state, "recv", buffer, options));
  }

  /** Shares the handles of one-sided sends and receives (backend cuda), which `post` then posts. Throws `foreign-tensor`, `bad-argument`. */
  shareMemHandles(...peers: readonly SharedPeer[]): readonly P2PCommunication[] {
    return shareHandles(this.#state, peers);
  }

  /** Posts a communication, once more or for the first time. Throws `bad-argument` for one of another builder. */
  post<C extends Communication | P2PCommunication>(communication: C): C {
    return addPost(this.#state, communication);
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
    addWait(this.#state, posted);
  }

  /** The program as it is now. Throws what `validateHostProgram` finds. */
  build(): HostProgram {
    return programOf(this.#state);
  }
}
