/**
 * Values of a nest over elements that later nests of a group of rows compute again, instead of reading them: so they need
 * the registers of what they are computed from alone, often of 16 bits an element and not 32.
 */
import type { Access, Nest } from "../../../../kernels/nests/nest.ts";
import type { Expression } from "../../../../numerics/scalar/expression.ts";
import { at } from "../../../../support/invariant.ts";

/** What matters here of a nest of a row group. */
interface Member {
  readonly form: "reduction" | "elements" | "row";
  readonly nest: Nest;
  /** By load: the earlier nest that has its value, as its result if `load` is null. */
  readonly given: ReadonlyMap<number, { readonly nest: number; readonly load: number | null }>;
  readonly again: boolean;
}

/** Elements of a lane for whose values there are registers. 24 and 32 were measured (bench/NOTES.md). */
const keptElements = 24;

/** Of registers, in primitives alone: a library function takes longer than it saves. */
export function isComputedAgain({ form, nest }: Pick<Member, "form" | "nest">, laneElements: number): boolean {
  return (
    laneElements > keptElements &&
    form === "elements" &&
    nest.body.every((step) => step.kind === "load" || (step.kind === "apply" && isOfPrimitives(step.expression)))
  );
}

function isOfPrimitives(expression: Expression): boolean {
  switch (expression.kind) {
    case "operand":
    case "constant":
      return true;
    case "apply":
      return expression.operands.every(isOfPrimitives);
    case "round":
      return isOfPrimitives(expression.operand);
    default:
      return false;
  }
}

/** What a nest over elements loads, itself or through what it is given. */
export function registersReadBy(
  members: readonly Member[],
  index: number,
): readonly { readonly nest: number; readonly load: number; readonly access: Access }[] {
  const { nest, given } = at(members, index);
  return nest.body.flatMap((step, position) => {
    if (step.kind !== "load") return [];
    const source = given.get(position);
    if (source === undefined) return [{ nest: index, load: position, access: step.access }];
    if (source.load !== null) return [{ nest: source.nest, load: source.load, access: step.access }];
    return at(members, source.nest).again ? registersReadBy(members, source.nest) : [];
  });
}
