/** Infers axis numbers that an op does not print from the axes of its operand and output. */
import { isDID, type IterDomain, type IterDomainId, type Tensor, withoutReductions } from "../../../ir/domain.ts";
import { sameScalar } from "../../../ir/scalar/fold.ts";
import { at } from "../../../support/invariant.ts";
import { leadingParallel } from "../values/axis-order.ts";
import { domainsHelp } from "../values/domain-notes.ts";
import { failAt } from "../text/source.ts";
import type { Scanner } from "../text/scanner.ts";

/**
 * Reduced axes stay in the output's domain, at their positions in the operand. If there are more axes than in the
 * operand, the axes with DID types before a reduced one number the devices' partial results.
 */
export function reducedAxes(scanner: Scanner, start: number, input: Tensor, output: Tensor): readonly number[] {
  const rank = withoutReductions(input.domain.logical).length;
  const logical = withoutPartialAxes(output.domain.logical, output.domain.logical.length - rank);
  const axes = logical.flatMap((axis, i) => (axis.iterType === "reduction" ? [i] : []));
  if (logical.length === rank && axes.length > 0) return axes;
  return failAt(scanner.source, start, {
    code: "dump-incomplete",
    message: `T${output.id} does not show which axes are reduced`,
    found: `${axes.length} reduced among ${logical.length} axes, from an operand with ${rank}`,
    expected: `${rank} axes, the reduced ones with an r`,
    help: "print the output with its reduced axes, as nvFuser does",
  });
}

function withoutPartialAxes(logical: readonly IterDomain[], count: number): readonly IterDomain[] {
  let [axes, left] = [logical, count];
  for (let i = axes.length - 2; i >= 0 && left > 0; i--) {
    const axis = at(axes, i);
    if (!isDID(axis.parallelType) || axis.iterType === "reduction" || axes[i + 1]?.iterType !== "reduction") continue;
    axes = axes.toSpliced(i, 1);
    left--;
  }
  return axes;
}

/**
 * `order[i]`: the axis of the operand that becomes axis i. The axes of a permuted tensor are numbered in the operand's
 * order and then moved, so their numbers give the order. If they do not, or if axes of devices come first, to which
 * nvFuser may have moved them, a root domain does.
 */
export function permuteOrder(
  scanner: Scanner,
  start: number,
  input: Tensor,
  output: Tensor,
  root: readonly IterDomainId[] | null,
): readonly number[] {
  const from = withoutReductions(input.domain.logical);
  const to = withoutReductions(output.domain.logical);
  const sorted = root ?? to.map(({ id }) => id).sort((a, b) => a - b);
  const order = to.map(({ id }) => sorted.indexOf(id));
  const fits =
    from.length === to.length &&
    (root !== null || to.length === 1 || leadingParallel(output.domain.loop) === 0) &&
    order.every((position, i) => position >= 0 && sameScalar(at(from, position).extent, at(to, i).extent));
  if (fits) return order;
  return failAt(scanner.source, start, {
    code: "dump-incomplete",
    message: `T${output.id} does not show how T${input.id} is permuted`,
    found: `axes numbered ${to.map(({ id }) => id).join(", ")}`,
    expected: "numbers in the order of the operand's axes, or a root domain",
    help: domainsHelp,
  });
}
