/** Which mesh dimensions a collective of a manual computation goes along. */
import { at } from "../../support/invariant.ts";
import { numbersIn } from "./read-attributes.ts";
import type { Reader } from "./reader.ts";
import type { Mesh } from "./mesh.ts";
import { dimensionsIn } from "./sharding.ts";
import type { Attribute } from "./syntax/nodes.ts";

/** The mesh of a manual computation, and its manual dimensions, outermost first. */
export interface Manual {
  readonly mesh: Mesh;
  readonly names: readonly string[];
}

/**
 * The dimensions along which the groups lie, in the order in which a group counts them; null for groups that are not
 * along dimensions of the mesh. `replica_groups` names axes of a mesh, or lists devices.
 */
export function groupAxes(
  reader: Reader,
  position: number,
  manual: Manual,
  groups: Attribute | null,
): readonly string[] | null {
  if (groups?.kind !== "named") return null;
  if (groups.name.endsWith("mesh_axes")) return namedAxes(reader, position, manual, groups.body);
  const rows = rowsIn(groups.body);
  const [row] = rows;
  if (row === undefined) return null;
  const wanted = new Set(rows.map((each) => each.join()));
  return (
    orderings(manual.names).find((names) => {
      const found = groupsAlong(manual.mesh, names);
      return found.length === rows.length && found.every((each) => wanted.has(each.join()));
    }) ?? null
  );
}

function namedAxes(reader: Reader, position: number, { mesh }: Manual, body: Attribute): readonly string[] | null {
  const list = body.kind === "group" ? body.entries.get("axes") : undefined;
  if (list?.kind !== "group") return null;
  return list.items.flatMap((item) => {
    const entries = item.kind === "named" && item.body.kind === "group" ? item.body.entries : null;
    const name = entries?.get("name");
    const part = entries?.get("sub_axis_info");
    if (name === undefined) return [];
    if (part?.kind !== "named" || part.body.kind !== "group") return dimensionsIn(reader, position, mesh, name);
    const size = part.body.entries.get("size") ?? at(part.body.items, 1);
    const before = part.body.entries.get("pre_size") ?? at(part.body.items, 0);
    const colon: Attribute = { kind: "word", text: ":" };
    return dimensionsIn(reader, position, mesh, { kind: "sequence", parts: [name, colon, before, size] });
  });
}

/** The rows of `dense<[[0, 1], [2, 3]]>`. */
export function rowsIn(body: Attribute): readonly (readonly number[])[] {
  const list = body.kind === "group" ? body.items[0] : undefined;
  if (list?.kind !== "group") {
    const numbers = numbersIn(body);
    return numbers === null ? [] : [numbers];
  }
  return list.items.map((item) => numbersIn(item) ?? []);
}

/** All lists of distinct names, the short ones first. */
function orderings(names: readonly string[]): readonly (readonly string[])[] {
  const all: (readonly string[])[] = [[]];
  for (let i = 0; i < all.length; i++) {
    const list = at(all, i);
    for (const name of names) if (!list.includes(name)) all.push([...list, name]);
  }
  return all;
}

/** The devices that differ along the dimensions alone, by group. */
function groupsAlong({ devices }: Mesh, names: readonly string[]): readonly (readonly number[])[] {
  const rest = (devices?.names ?? []).filter((name) => !names.includes(name));
  const order = [...rest, ...names];
  const size = (list: readonly string[]): number =>
    list.reduce((product, name) => product * (devices?.size(name) ?? 1), 1);
  const sorted = (devices?.devices ?? []).toSorted((a, b) => {
    const differing = order.find((name) => devices?.coordinate(a, name) !== devices?.coordinate(b, name));
    return differing === undefined
      ? 0
      : (devices?.coordinate(a, differing) ?? 0) - (devices?.coordinate(b, differing) ?? 0);
  });
  const span = size(names);
  return Array.from({ length: sorted.length / span }, (_, i) => sorted.slice(i * span, (i + 1) * span));
}

/** A permutation of the positions along some dimensions, the same wherever the others are. */
export interface DevicePermutation {
  readonly names: readonly string[];
  /** For each position along the dimensions, the one that sends to it; null if none does. */
  readonly sources: readonly (number | null)[];
}

/** Null if the pairs of devices are no such permutation. */
export function permutationAlong(
  { mesh, names }: Manual,
  pairs: readonly (readonly number[])[],
): DevicePermutation | null {
  const { devices } = mesh;
  if (devices === null) return null;
  const isKnown = pairs.every((pair) => pair.length === 2 && pair.every((device) => devices.has(device)));
  if (!isKnown) return null;
  const coordinate = (device: number, name: string): number => devices.coordinate(device, name);
  const changed = names.filter((name) =>
    pairs.some(([from = 0, to = 0]) => coordinate(from, name) !== coordinate(to, name)),
  );
  const rest = devices.names.filter((name) => !changed.includes(name));
  const position = (device: number): number =>
    changed.reduce((sum, name) => sum * devices.size(name) + coordinate(device, name), 0);
  const count = changed.reduce((product, name) => product * devices.size(name), 1);
  const sources = Array.from({ length: count }, (): number | null => null);
  for (const [from = 0, to = 0] of pairs) {
    if (rest.some((name) => coordinate(from, name) !== coordinate(to, name))) return null;
    const before = sources[position(to)] ?? null;
    if (before !== null && before !== position(from)) return null;
    sources[position(to)] = position(from);
  }
  const sending = sources.filter((source) => source !== null).length;
  return pairs.length * count === sending * devices.devices.length ? { names: changed, sources } : null;
}
