/**
 * Which axes of a host program's tensors index the same thing: nvFuser's IdModel BROADCAST graph. Axes that an op maps onto each other
 * share a class; a broadcast axis shares it with the axis it is broadcast to.
 */
import { axisMap } from "../ir/axis-map.ts";
import type { IterDomain } from "../ir/domain.ts";
import type { HostProgram } from "../host/nodes.ts";
import { isOp } from "../host/statement-kinds.ts";
import { at } from "../support/invariant.ts";
import { createUnionFind } from "../support/union-find.ts";

export interface AxisClasses {
  readonly same: (a: IterDomain, b: IterDomain) => boolean;
}

export function axisClasses(program: HostProgram): AxisClasses {
  const sets = createUnionFind(program.iterDomainCount);
  const ops = program.body.flatMap((statement) =>
    isOp(statement)
      ? [statement]
      : statement.kind === "PostOnStream"
        ? at(program.units, statement.unit).fusion.ops
        : [],
  );
  for (const op of ops) {
    for (const { producer, consumer } of axisMap(op, program.tensors)) sets.union(producer.id, consumer.id);
  }
  return { same: (a, b) => sets.find(a.id) === sets.find(b.id) };
}
