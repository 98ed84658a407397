/**
 * Which axes of a host program's tensors have the same index (nvFuser's IdModel BROADCAST graph). Axes that an op maps
 * onto each other are in one class, and a broadcast axis is in the class of the axis that it is broadcast to. The ops
 * of a host unit connect axes as well.
 */
import { axisMap } from "../../../ir/ops/axis-map.ts";
import { type IterDomain, type IterDomainId, type Tensor, withoutReductions } from "../../../ir/domain.ts";
import type { HostProgram, PostOnStream } from "../../../host/nodes.ts";
import { isOp } from "../../../host/traverse.ts";
import { at } from "../../../support/invariant.ts";
import { createUnionFind } from "../../../support/union-find.ts";

export interface AxisClasses {
  readonly same: (a: IterDomain, b: IterDomain) => boolean;
  /** The same number for all axes of a class. */
  readonly of: (axis: IterDomain) => number;
}

/** Two axes of one class, by number. The program's axes come first, by id, then the axes inside its posted units. */
type Pair = readonly [number, number];

export function axisClasses(program: HostProgram): AxisClasses {
  const pairs: Pair[] = [];
  let count: number = program.iterDomainCount;
  for (const statement of program.body) {
    if (isOp(statement)) {
      for (const { producer, consumer } of axisMap(statement, program.tensors)) pairs.push([producer.id, consumer.id]);
    } else if (statement.kind === "PostOnStream") {
      const numbers = new Map<IterDomainId, number>();
      const numberOf = ({ id }: IterDomain): number => {
        const number = numbers.get(id) ?? count++;
        numbers.set(id, number);
        return number;
      };
      for (const pair of unitPairs(statement, program, numberOf)) pairs.push(pair);
    }
  }
  const sets = createUnionFind(count);
  for (const [a, b] of pairs) sets.union(a, b);
  return { same: (a, b) => sets.find(a.id) === sets.find(b.id), of: (axis) => sets.find(axis.id) };
}

/** A unit has separate tensors, and may be posted twice: `numberOf` numbers their axes for this post. */
function unitPairs(
  { unit, inputs, outputs }: PostOnStream,
  { tensors, units }: HostProgram,
  numberOf: (axis: IterDomain) => number,
): readonly Pair[] {
  const { fusion } = at(units, unit);
  const within = fusion.ops.flatMap((op) =>
    axisMap(op, fusion.tensors).map(({ producer, consumer }): Pair => [numberOf(producer), numberOf(consumer)]),
  );
  const own = [...fusion.inputs, ...fusion.outputs].map((id) => at(fusion.tensors, id));
  const given = [...inputs, ...outputs].map((id) => at(tensors, id));
  const across = own.flatMap((tensor, i): readonly Pair[] => {
    const others = keptAxes(at(given, i));
    return keptAxes(tensor).map((axis, position): Pair => [numberOf(axis), at(others, position).id]);
  });
  return [...within, ...across];
}

function keptAxes(tensor: Tensor): readonly IterDomain[] {
  return withoutReductions(tensor.domain.logical);
}
