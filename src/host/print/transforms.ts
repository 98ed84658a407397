/**
 * The section of a dump with what the axes of a tensor do not show, in the form of nvFuser's transform printer: a
 * logical domain that was split or merged, an order in memory, and the root domain of a permuted tensor whose axis
 * numbers do not give its order. parse/transforms.ts reads it.
 *
 *   TransformPrinter :
 *   T0_g_float[ideviceIdx.x2{2}, iS3{4}] (DeviceMesh{0 1})
 *    logical domain : (iS0{8})
 *    contiguity: t
 *     Outer split: iS0{8} by factor 2 -> ideviceIdx.x2{2}, iS3{4}
 *    loop domain : (ideviceIdx.x2{2}, iS3{4})
 */
import { type IterDomain, type IterDomainId, type Tensor, type TensorId, withoutReductions } from "../../ir/domain.ts";
import type { PermuteOp } from "../../ir/ops/op.ts";
import type { IrSpelling } from "../../ir/print-style.ts";
import { printIterDomain, printTensor } from "../../ir/print-tensor.ts";
import { constant } from "../../ir/scalar/scalar.ts";
import { foldCeilDiv, foldMul } from "../../ir/scalar/fold.ts";
import { at, invariant } from "../../support/invariant.ts";
import type { Statement } from "../nodes.ts";
import { transformsTitle } from "../syntax/sections.ts";
import { accessesOf } from "../traverse.ts";

/** The section's lines, tensors in the order of their numbers; none if the axes show everything. */
export function transformLines(
  tensors: readonly Tensor[],
  arguments_: readonly TensorId[],
  statements: readonly Statement[],
  spelling: IrSpelling,
): readonly string[] {
  const mentioned = new Set(arguments_);
  const roots = new Map<TensorId, readonly IterDomain[]>();
  for (const statement of statements) {
    const { reads, writes } = accessesOf(statement);
    for (const id of [...reads, ...writes]) mentioned.add(id);
    if (statement.kind === "Permute") addRoot(roots, statement, tensors);
  }
  const lines = [...mentioned]
    .sort((a, b) => a - b)
    .flatMap((id) => tensorLines(at(tensors, id), roots.get(id) ?? null, spelling));
  return lines.length === 0 ? [] : [transformsTitle, ...lines];
}

/**
 * Notes the root of a permuted tensor unless its axes are numbered in the order of the operand's, as they usually are.
 */
function addRoot(
  roots: Map<TensorId, readonly IterDomain[]>,
  { order, output }: PermuteOp,
  tensors: readonly Tensor[],
): void {
  const axes = withoutReductions(at(tensors, output).domain.logical);
  const root = axes.map((_, position) => at(axes, order.indexOf(position)));
  if (root.some(({ id }, i) => i > 0 && id < at(root, i - 1).id)) roots.set(output, root);
}

function tensorLines(tensor: Tensor, root: readonly IterDomain[] | null, spelling: IrSpelling): readonly string[] {
  const { logical, loop, allocation, transforms } = tensor.domain;
  const isPlain = transforms.length === 0 && allocation === null && logical.every((axis, i) => axis.id === loop[i]?.id);
  if (isPlain && root === null) return [];
  const axes = axesById(tensor);
  const text = (id: IterDomainId): string => printIterDomain(axisOf(axes, id), spelling);
  const domain = (title: string, own: readonly IterDomain[]): string =>
    ` ${title} domain : (${own.map((axis) => printIterDomain(axis, spelling)).join(", ")})`;
  return [
    printTensor(tensor, spelling),
    ...(root === null ? [] : [domain("root", root)]),
    domain("logical", logical),
    ...(allocation === null ? [] : [domain("allocation", allocation)]),
    ` contiguity: ${(allocation ?? logical).map(({ iterType }) => (iterType === "iteration" ? "t" : "n")).join(" ")}`,
    ...transforms.map((transform) =>
      transform.kind === "merge"
        ? `  Merge: ${text(transform.outer)} and ${text(transform.inner)} -> ${text(transform.output)}`
        : `  ${transform.innerSplit ? "Split" : "Outer split"}: ${text(transform.input)} by factor ${transform.factor} -> ${text(transform.outer)}, ${text(transform.inner)}`,
    ),
    domain("loop", loop),
  ];
}

/** All axes of a tensor, including those that one transform made and a later one consumed. */
function axesById({ domain: { logical, loop, transforms } }: Tensor): ReadonlyMap<IterDomainId, IterDomain> {
  const axes = new Map([...logical, ...loop].map((axis) => [axis.id, axis]));
  const derive = (id: IterDomainId, from: IterDomain, extent: IterDomain["extent"]): void => {
    if (!axes.has(id)) axes.set(id, { id, extent, iterType: from.iterType, parallelType: "Serial" });
  };
  for (const transform of transforms) {
    if (transform.kind === "merge") {
      const outer = axisOf(axes, transform.outer);
      derive(transform.output, outer, foldMul(outer.extent, axisOf(axes, transform.inner).extent));
      continue;
    }
    const input = axisOf(axes, transform.input);
    const factor = constant(transform.factor);
    const rest = foldCeilDiv(input.extent, factor);
    derive(transform.outer, input, transform.innerSplit ? rest : factor);
    derive(transform.inner, input, transform.innerSplit ? factor : rest);
  }
  return axes;
}

function axisOf(axes: ReadonlyMap<IterDomainId, IterDomain>, id: IterDomainId): IterDomain {
  const axis = axes.get(id);
  invariant(axis !== undefined, "a transform takes axes that exist", { id });
  return axis;
}
