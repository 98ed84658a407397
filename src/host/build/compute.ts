/** Computations and slices of a HostProgramBuilder: what they put out follows the rules of the Fusion API's ops. */
import { requireTensor } from "../../ir/api/handle.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { type Call, call, type CallArgument, reject, resolveAxis, shapeText } from "../../ir/ops/call.ts";
import { type AxisShape, withoutReductions } from "../../ir/domain.ts";
import { inferOutput, type OutputShape } from "../../ir/ops/rows.ts";
import { opOf, type OpSpec } from "../../ir/ops/op.ts";
import { printTensor } from "../../ir/print-tensor.ts";
import { extentsDiffer } from "../../ir/scalar/fold.ts";
import { printScalar } from "../../ir/scalar/print.ts";
import { at } from "../../support/invariant.ts";
import { append, type BuilderState, ownId, type ScalarLike, toScalar } from "./state.ts";
import { addLike, annotate } from "./tensors.ts";

export interface OutputOption {
  /** The tensor to write; a new one if not given. */
  readonly out?: TensorView | undefined;
}

/** The op over `operands`. Throws `foreign-tensor`, `shape-mismatch`, `dtype-mismatch`. */
export function compute(
  state: BuilderState,
  specOf: (place: Call) => OpSpec,
  name: string,
  operands: readonly TensorView[],
  args: readonly CallArgument[],
  { out }: OutputOption,
): TensorView {
  operands.forEach((operand, i) => {
    requireTensor(operand, name, i);
  });
  const place = call(name, ...operands.map(({ id }) => ({ tensor: id })), ...args);
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

/** Binds a tensor to the view of `input` at `index` along `axis` of its logical domain, which counts reduced axes. */
export function aliasSelect(
  state: BuilderState,
  input: TensorView,
  axis: number,
  index: ScalarLike,
  { out }: OutputOption,
): TensorView {
  const shown = { code: typeof index === "number" ? String(index) : printScalar(index) };
  const place = call("select", { tensor: input.id }, axis, shown);
  const source = ownId(state, input, place);
  const { dtype, mesh, domain } = input.data();
  const position = resolveAxis(axis, domain.logical.length, place);
  const axes = domain.logical.toSpliced(position, 1);
  const output = out ?? addLike(state, dtype, axes);
  if (out === undefined) {
    const parallel = axes.map(({ parallelType }) => parallelType);
    annotate(output, { ...(mesh === null ? {} : { mesh }), parallel, memory: "local" }, place);
  } else {
    requireFits(
      state,
      out,
      { dtype, axes: withoutReductions(axes) },
      place,
      withoutReductions(out.data().domain.logical),
    );
  }
  const statement = { input: source, output: ownId(state, output, place), axis: position, index: toScalar(index) };
  append(state, { kind: "HirAliasSelect", ...statement });
  return output;
}

/** Symbolic extents are taken as equal; `record` knows their sizes. The reduced axis of a chunk may be any part of the output's. */
function requireFits(
  state: BuilderState,
  out: TensorView,
  { dtype, axes }: OutputShape,
  place: Call,
  own: readonly AxisShape[] = out.data().domain.logical,
  isChunk = false,
): void {
  ownId(state, out, place);
  const fits =
    out.dtype === dtype &&
    own.length === axes.length &&
    own.every((axis, i) => {
      const expected = at(axes, i);
      const reduced = axis.iterType === "reduction";
      if (reduced !== (expected.iterType === "reduction")) return false;
      return (reduced && isChunk) || !extentsDiffer(axis.extent, expected.extent);
    });
  if (fits) return;
  const [kept, reduced] = [axes.filter(isKept), axes.filter((axis) => !isKept(axis))];
  reject(place, {
    code: out.dtype === dtype ? "shape-mismatch" : "dtype-mismatch",
    message: `the given output does not fit the result of ${place.text}`,
    found: `${shapeText(out.data())} ${out.dtype}, as a whole ${printTensor(out.data())}`,
    expected: `${kept.length} axes${reduced.length === 0 ? "" : ` and ${reduced.length} reduced`} of ${dtype}, with the operands' extents`,
    help: "make the output with tensor([...]), with { reduced: extent } where the op leaves a reduced axis",
  });
}

function isKept({ iterType }: AxisShape): boolean {
  return iterType !== "reduction";
}
