/** Which meshes the functions name that a program calls, which of their axes, and which parts of these. */
import { numbersIn } from "./read-attributes.ts";
import type { Attribute, MlirFunction, MlirModule, Operation } from "./syntax/nodes.ts";
import { getOrMake } from "../../support/invariant.ts";

/** By mesh and axis, where parts of the axis begin and end: 1 and 2 of `"x":(1)2`. */
export type UsedMeshes = ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<number>>>;

export function usedMeshes({ functions }: MlirModule, main: MlirFunction): UsedMeshes {
  const used = new Map<string, Map<string, Set<number>>>();
  const called = new Set([main]);
  const meshNamed = (name: string): Map<string, Set<number>> => {
    return getOrMake(used, name, () => new Map<string, Set<number>>());
  };
  /** `mesh`: the cuts of the mesh whose sharding the attribute is in. */
  const visit = (attribute: Attribute, mesh: Map<string, Set<number>> | null): void => {
    switch (attribute.kind) {
      case "symbol": {
        const callee = functions.get(attribute.name);
        if (callee === undefined) meshNamed(attribute.name);
        else called.add(callee);
        return;
      }
      case "named":
        visit(attribute.body, mesh);
        return;
      case "group": {
        const { items, entries } = attribute;
        const [first] = items;
        const own = first?.kind === "symbol" ? meshNamed(first.name) : mesh;
        for (const each of items) visit(each, own);
        for (const each of entries.values()) visit(each, own);
        return;
      }
      case "string":
        if (mesh !== null && !mesh.has(attribute.text)) mesh.set(attribute.text, new Set());
        return;
      case "sequence": {
        const [axis, , before, size] = attribute.parts;
        if (axis?.kind === "string" && mesh !== null && before !== undefined && size !== undefined) {
          const [from, span] = [numbersIn(before)?.[0] ?? 1, numbersIn(size)?.[0] ?? 1];
          const cuts = mesh.get(axis.text) ?? new Set();
          mesh.set(axis.text, cuts.add(from).add(from * span));
        }
        for (const each of attribute.parts) visit(each, mesh);
        return;
      }
      default:
    }
  };
  const visitAll = (operations: readonly Operation[]): void => {
    for (const { attributes, items, regions } of operations) {
      for (const each of attributes.values()) visit(each, null);
      for (const each of items) visit(each, null);
      for (const region of regions) visitAll(region.operations);
    }
  };
  // The set grows while it is visited.
  for (const { arguments: given, resultAttributes, body } of called) {
    for (const { attributes } of given) for (const each of attributes.values()) visit(each, null);
    for (const attributes of resultAttributes) for (const each of attributes.values()) visit(each, null);
    visitAll(body ?? []);
  }
  return used;
}
