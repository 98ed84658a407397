/** The computations of a HostProgramBuilder. Each method appends one statement to the current scope. */
import { requireDType } from "../../ir/api/fusion.ts";
import { argumentOf, requireTensor } from "../../ir/api/handle.ts";
import type { BinaryOperand } from "../../ir/api/ops.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { type AxisShape, withoutReductions } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { type Call, call, type CallArgument, reject, resolveAxis, shapeText } from "../../ir/ops/call.ts";
import { iotaSpec } from "../../ir/ops/kinds/creation.ts";
import { reductionSpec } from "../../ir/ops/kinds/reduction.ts";
import { broadcastSpec, permuteSpec, squeezeSpec, reshapeSpec } from "../../ir/ops/kinds/views/broadcast.ts";
import { selectSpec, sliceSpec } from "../../ir/ops/kinds/views/slice.ts";
import { type NumberOperand, operandArguments, splitOperands } from "../../ir/ops/number-operand.ts";
import { type BinaryOpType, opOf, type OpSpec, type ReductionOpType, type UnaryOpType } from "../../ir/ops/op.ts";
import { inferOutput, type OutputShape } from "../../ir/ops/rows.ts";
import { printTensor } from "../../ir/print-tensor.ts";
import { constant, printScalar } from "../../ir/scalar/scalar.ts";
import type { DType } from "../../numerics/dtype.ts";
import { at } from "../../support/invariant.ts";
import { sameAxis } from "../validate/op.ts";
import type { ContractionOptions, OutputOption, ScalarLike } from "./options.ts";
import { addLike, annotate, append, type BuilderState, createBuilderState, ownId, toScalar } from "./state.ts";
import { postUnit } from "./units.ts";

export class HostComputations {
  protected readonly state = createBuilderState();

  /**
   * Binds a tensor to the view of `input` at `index` along `axis` (HirAliasSelect). `axis` counts the logical domain
   * with its reduced axes. A new tensor has the input's other axes and its annotations. Throws `axis-out-of-range`,
   * `foreign-tensor`, `shape-mismatch`, `dtype-mismatch`.
   */
  select(input: TensorView, axis: number, index: ScalarLike, { out }: OutputOption = {}): TensorView {
    requireTensor(input, "select", 0);
    const place = call("select", argumentOf(input, this.state.tensors), axis, scalarText(index));
    const source = ownId(this.state, input, place);
    const { dtype, mesh, domain } = input.data();
    const position = resolveAxis(axis, domain.logical.length, place);
    const axes = domain.logical.toSpliced(position, 1);
    const output = out ?? addLike(this.state, dtype, axes);
    if (out === undefined) {
      const parallel = axes.map(({ parallelType }) => parallelType);
      annotate(output, { ...(mesh === null ? {} : { mesh }), parallel, memory: "local" }, place);
    } else {
      const own = withoutReductions(out.data().domain.logical);
      requireFits(this.state, out, { dtype, axes: withoutReductions(axes) }, place, own);
    }
    append(this.state, {
      kind: "HirAliasSelect",
      input: source,
      output: ownId(this.state, output, place),
      axis: position,
      index: toScalar(index),
    });
    return output;
  }

  /**
   * The numbers 0, 1, .. of one axis of `extent` elements, as int64 or int. On a sharded axis of `out` they count in the
   * whole tensor. Throws `dtype-mismatch`.
   */
  iota(
    extent: ScalarLike,
    { dtype = "int64", ...options }: OutputOption & { readonly dtype?: DType } = {},
  ): TensorView {
    return compute(this.state, "iota", [], [scalarText(extent)], options, (place) =>
      iotaSpec(toScalar(extent), constant(0), constant(1), dtype, place),
    );
  }

  /** Copies `input`. An output without memory is bound to the input instead. */
  set(input: TensorView, options: OutputOption = {}): TensorView {
    return compute(this.state, "set", [input], [], options, () => ({ kind: "Set" }));
  }

  /**
   * The elementwise sum. Operands have one dtype; axes of one element broadcast.
   * Throws `shape-mismatch`, `dtype-mismatch`.
   */
  add(a: BinaryOperand, b: BinaryOperand, options: OutputOption = {}): TensorView {
    return this.binary("add", a, b, options);
  }

  /** The elementwise difference, as `add`. */
  sub(a: BinaryOperand, b: BinaryOperand, options: OutputOption = {}): TensorView {
    return this.binary("sub", a, b, options);
  }

  /** The elementwise product, as `add`. */
  mul(a: BinaryOperand, b: BinaryOperand, options: OutputOption = {}): TensorView {
    return this.binary("mul", a, b, options);
  }

  /** The elementwise quotient, as `add`. */
  div(a: BinaryOperand, b: BinaryOperand, options: OutputOption = {}): TensorView {
    return this.binary("div", a, b, options);
  }

  /** A function of two operands, such as `maximum` or `lt`, as `add`. */
  binary(op: BinaryOpType, a: BinaryOperand, b: BinaryOperand, options: OutputOption = {}): TensorView {
    const { tensors, number } = splitOperands(op, a, b);
    return compute(this.state, op, tensors, [], options, () => ({ kind: "Binary", op, ...number }), number.scalar);
  }

  /** A function, such as `relu`, of every element. Throws `dtype-mismatch`. */
  unary(op: UnaryOpType, input: TensorView, options: OutputOption = {}): TensorView {
    return compute(this.state, op, [input], [], options, () => ({ kind: "Unary", op }));
  }

  /** Converts every element to `dtype`. Throws `bad-argument`. */
  cast(input: TensorView, dtype: DType, options: OutputOption = {}): TensorView {
    return compute(this.state, "cast", [input], [String(dtype)], options, (place) => {
      requireDType(dtype, place);
      return { kind: "Cast", to: dtype };
    });
  }

  /**
   * The sum over `axes`, which stay in the output's logical domain as reduced axes.
   * Throws `axis-out-of-range`, `axis-repeated`, `bad-argument`.
   */
  sum(input: TensorView, axes: readonly number[], options: OutputOption = {}): TensorView {
    return this.#reduce("sum", input, axes, options);
  }

  /** The product over `axes`, as `sum`. */
  prod(input: TensorView, axes: readonly number[], options: OutputOption = {}): TensorView {
    return this.#reduce("prod", input, axes, options);
  }

  /** The largest element over `axes`, as `sum`. */
  amax(input: TensorView, axes: readonly number[], options: OutputOption = {}): TensorView {
    return this.#reduce("amax", input, axes, options);
  }

  /** The smallest element over `axes`, as `sum`. */
  amin(input: TensorView, axes: readonly number[], options: OutputOption = {}): TensorView {
    return this.#reduce("amin", input, axes, options);
  }

  #reduce(op: ReductionOpType, input: TensorView, axes: readonly number[], options: OutputOption): TensorView {
    return compute(this.state, op, [input], [axes], options, (place) => reductionSpec(op, input.data(), axes, place));
  }

  /**
   * torch.matmul: [.., M, K] x [.., K, N] -> [.., M, N]. The output keeps K as a reduced axis. With `accumulate` the
   * result is added to `out`, as torch.addmm with beta = 1. Throws `shape-mismatch`, `dtype-mismatch`, `bad-argument`.
   */
  matmul(a: TensorView, b: TensorView, options: ContractionOptions = {}): TensorView {
    return this.#contract("Matmul", [a, b], options);
  }

  /**
   * torch.nn.functional.linear: x [.., K], weight [N, K], bias [N] -> [.., N]. The output keeps K as a reduced axis;
   * `accumulate` as in `matmul`. Throws `shape-mismatch`, `dtype-mismatch`, `bad-argument`.
   */
  linear(
    x: TensorView,
    weight: TensorView,
    bias: TensorView | null = null,
    options: ContractionOptions = {},
  ): TensorView {
    return this.#contract("Linear", bias === null ? [x, weight] : [x, weight, bias], options);
  }

  #contract(
    kind: "Matmul" | "Linear",
    operands: readonly TensorView[],
    { out, accumulate }: ContractionOptions,
  ): TensorView {
    return compute(this.state, kind.toLowerCase(), operands, [], { out }, (place) => {
      if (accumulate === undefined) return { kind };
      if (out !== undefined) return { kind, accumulate };
      return reject(place, "bad-argument", "chunks of a contraction have one output", {
        found: `accumulate: ${accumulate} without an output`,
        expected: "the tensor that accumulates all chunks, as `out`",
        help: "make the output with tensor([...], { reduced: extent }) and allocate it",
      });
    });
  }

  /** Adds an axis of one element for each true flag. Throws `bad-argument`. */
  broadcast(input: TensorView, flags: readonly boolean[], options: OutputOption = {}): TensorView {
    const spec = (place: Call): OpSpec => broadcastSpec(input.data(), flags, place);
    return compute(this.state, "broadcast", [input], [flags], options, spec);
  }

  /** Removes `axes`, which have one element. Throws `axis-out-of-range`, `axis-repeated`, `shape-mismatch`. */
  squeeze(input: TensorView, axes: readonly number[], options: OutputOption = {}): TensorView {
    const spec = (place: Call): OpSpec => squeezeSpec(input.data(), axes, place);
    return compute(this.state, "squeeze", [input], [axes], options, spec);
  }

  /**
   * Axis i of the output is axis `order[i]` of the input. Throws `axis-out-of-range`, `axis-repeated`, `bad-argument`.
   */
  permute(input: TensorView, order: readonly number[], options: OutputOption = {}): TensorView {
    const spec = (place: Call): OpSpec => permuteSpec(input.data(), order, place);
    return compute(this.state, "permute", [input], [order], options, spec);
  }

  /**
   * The same elements in row-major order with extents `shape`, one of which may be -1 and follows from the others.
   * Throws `bad-extent`, `bad-argument`, `shape-mismatch`.
   */
  reshape(input: TensorView, shape: readonly ScalarLike[], options: OutputOption = {}): TensorView {
    const spec = (place: Call): OpSpec => reshapeSpec(input.data(), shape, place);
    return compute(this.state, "reshape", [input], [shown(shape)], options, spec);
  }

  /** Elements `[starts[i], stops[i])` of every axis i. Throws `bad-argument`, `index-out-of-range`. */
  slice(
    input: TensorView,
    starts: readonly ScalarLike[],
    stops: readonly ScalarLike[],
    options: OutputOption = {},
  ): TensorView {
    const spec = (place: Call): OpSpec => sliceSpec(input.data(), starts, stops, place);
    return compute(this.state, "slice", [input], [shown(starts), shown(stops)], options, spec);
  }

  /**
   * The op `select`, which copies if the output has memory. `axis` counts without reduced axes.
   * Throws `axis-out-of-range`, `index-out-of-range`.
   */
  selectOp(input: TensorView, axis: number, index: ScalarLike, options: OutputOption = {}): TensorView {
    const spec = (place: Call): OpSpec =>
      typeof index === "number"
        ? selectSpec(input.data(), axis, index, place)
        : { kind: "Select", axis: resolveAxis(axis, input.rank, place), index };
    return compute(this.state, "selectOp", [input], [axis, scalarText(index)], options, spec);
  }

  /**
   * Runs a Fusion as one kernel. Its symbolic extents take the values of those of `inputs`. Without `outputs` the
   * method makes and returns new tensors like the Fusion's. Throws `foreign-tensor`.
   */
  postOnStream(
    fusion: { data(): FusionData },
    inputs: readonly TensorView[],
    outputs?: readonly TensorView[],
  ): readonly TensorView[] {
    return postUnit(this.state, fusion.data(), inputs, outputs);
  }
}

function shown(values: readonly ScalarLike[]): readonly string[] {
  return values.map((value) => (typeof value === "number" ? String(value) : printScalar(value)));
}

function scalarText(value: ScalarLike): CallArgument {
  return { code: typeof value === "number" ? String(value) : printScalar(value) };
}

// Appends ops to a HostProgramBuilder. Their outputs follow the rules of the Fusion API's ops.

/**
 * Appends the op over `operands` that a call of `method` asks for. `args` are the call's other arguments, which
 * diagnostics show, and `scalar` is an operand that is a number. Throws `foreign-tensor`, `shape-mismatch`,
 * `dtype-mismatch`, and any error of `specOf`.
 */
function compute(
  state: BuilderState,
  method: string,
  operands: readonly TensorView[],
  args: readonly CallArgument[],
  { out }: OutputOption,
  specOf: (place: Call) => OpSpec,
  scalar?: NumberOperand,
): TensorView {
  operands.forEach((operand, i) => {
    requireTensor(operand, method, i);
  });
  const shown = operands.map((operand) => argumentOf(operand, state.tensors));
  const place = call(method, ...operandArguments(shown, scalar), ...args);
  const inputs = operands.map((operand) => ownId(state, operand, place));
  const tensors = operands.map((operand) => operand.data());
  const spec = specOf(place);
  const shape = inferOutput(spec, tensors, place);
  const output = out ?? addLike(state, shape.dtype, shape.axes, shape.numbering);
  const isChunk = (spec.kind === "Matmul" || spec.kind === "Linear") && spec.accumulate !== undefined;
  if (out !== undefined) requireFits(state, out, shape, place, out.data().domain.logical, isChunk);
  append(state, opOf(spec, inputs, ownId(state, output, place)));
  return output;
}

/**
 * Throws `shape-mismatch` or `dtype-mismatch` unless `out`, with the axes `own`, fits a result. Symbolic extents are
 * assumed equal, since only `record` knows their sizes. The reduced axis of a chunk may be any part of the output's.
 */
function requireFits(
  state: BuilderState,
  out: TensorView,
  { dtype, axes }: OutputShape,
  place: Call,
  own: readonly AxisShape[],
  isChunk = false,
): void {
  ownId(state, out, place);
  const fits =
    out.dtype === dtype && own.length === axes.length && own.every((axis, i) => sameAxis(axis, at(axes, i), isChunk));
  if (fits) return;
  const [kept, reduced] = [axes.filter(isKept), axes.filter((axis) => !isKept(axis))];
  reject(place, {
    code: out.dtype === dtype ? "shape-mismatch" : "dtype-mismatch",
    message: `the given output does not fit the result of ${place.text}`,
    found: `${shapeText(out.data())} ${out.dtype}, as a whole ${printTensor(out.data())}`,
    expected: `${kept.length} axes${reduced.length === 0 ? "" : ` and ${reduced.length} reduced`} of ${dtype}, with the operands' extents`,
    help: "make the output with tensor([...]), with { reduced: extent } if the op leaves a reduced axis",
  });
}

function isKept({ iterType }: AxisShape): boolean {
  return iterType !== "reduction";
}
