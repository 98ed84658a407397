/**
 * Shardy's meshes and shardings. A mesh axis becomes a mesh dimension of its name. Where shardings use a part of an axis,
 * `"x":(1)2`, the axis becomes several dimensions, `x_0` and `x_1`. Axes of size 1 shard nothing and are left out.
 */
import { DeviceMesh, type NestedDevices } from "../../ir/device-mesh.ts";
import { didTypes } from "../../ir/domain.ts";
import type { TensorView } from "../../ir/api/tensor-view.ts";
import { at } from "../../support/invariant.ts";
import { placeLeading } from "../manual/parts.ts";
import { numbersIn } from "./read-attributes.ts";
import { type InText, invalidText, type Reader, unsupported } from "./reader.ts";
import type { Dimension, Mesh, Meshes } from "./mesh.ts";
import type { Attribute, Operation } from "./syntax/nodes.ts";
import type { UsedMeshes } from "./used-meshes.ts";
import { elementCount } from "../../numerics/tensor/host-tensor.ts";

/** A sharding by dimensions of a mesh. */
export interface Sharding {
  readonly mesh: Mesh;
  /** By axis of the tensor, outermost dimension first. */
  readonly axes: readonly (readonly string[])[];
  /** Whether the sharding leaves the tensor to propagation: it has open axes and names no mesh axis. */
  readonly isOpen: boolean;
}

/** The meshes of a module that are used. */
export function readMeshes(reader: InText, operations: readonly Operation[], used: UsedMeshes): Meshes {
  const byName = new Map<string, Mesh>();
  const sizes = new Map<string, number>();
  for (const op of operations) {
    const [name, body] = op.items;
    if (op.name !== "sdy.mesh" || name?.kind !== "symbol" || body === undefined) continue;
    const cuts = used.get(name.name);
    if (cuts !== undefined) byName.set(name.name, readMesh(reader, op.position, body, cuts, sizes));
  }
  return { byName, sizes };
}

/** `<["dp"=2, "tp"=4], device_ids=[..]>`, also with `#sdy.mesh` in front. */
function readMesh(
  reader: InText,
  position: number,
  attribute: Attribute,
  cuts: ReadonlyMap<string, ReadonlySet<number>>,
  sizes: Map<string, number>,
): Mesh {
  const body = attribute.kind === "named" ? attribute.body : attribute;
  const list = body.kind === "group" ? body.items[0] : undefined;
  const ids = body.kind === "group" ? body.entries.get("device_ids") : undefined;
  if (list?.kind !== "group") {
    return invalidText(reader, position, {
      message: "a mesh has another form",
      found: "no list of axes",
      expected: '<["dp"=2, "tp"=4]>',
    });
  }
  const axes = new Map<string, readonly Dimension[]>();
  for (const [name, size] of list.entries) {
    axes.set(name, dimensionsOf(reader, position, name, numbersIn(size)?.[0] ?? 0, cuts.get(name) ?? new Set(), sizes));
  }
  const every = [...axes.values()].flat();
  const dimensions = every.length > didTypes.length ? withoutUnused(axes, cuts) : every;
  const count = elementCount(dimensions.map(({ size }) => size));
  const devices = ids === undefined ? null : numbersIn(ids);
  if (devices !== null && devices.length !== count) {
    invalidText(reader, position, {
      message: "a mesh lists another number of devices than its axes have",
      found: `${devices.length} device ids for ${count} devices`,
      expected: `${count} device ids`,
    });
  }
  if (dimensions.length > didTypes.length) {
    unsupported(reader, position, {
      message: "a mesh has more dimensions than Braid takes",
      found: `${dimensions.length}: ${dimensions.map(({ name, size }) => `${name}=${size}`).join(", ")}`,
      expected: `at most ${didTypes.length}, of more than one device each`,
      help: "merge axes of the mesh in the framework",
    });
  }
  const all = devices ?? Array.from({ length: count }, (_, i) => i);
  if (dimensions.length === 0) return { devices: devices === null ? null : new DeviceMesh(all), axes };
  return {
    devices: new DeviceMesh(
      nestedIn(
        all,
        dimensions.map(({ size }) => size),
      ),
      dimensions.map(({ name }) => name),
    ),
    axes,
  };
}

/** The dimensions of a mesh of too many: neighbours that no sharding names are one. */
function withoutUnused(
  axes: ReadonlyMap<string, readonly Dimension[]>,
  used: ReadonlyMap<string, unknown>,
): readonly Dimension[] {
  const kept: Dimension[] = [];
  let wasUnused = false;
  for (const [axis, dimensions] of axes) {
    const isUnused = !used.has(axis);
    for (const each of dimensions) {
      const last = kept.at(-1);
      if (isUnused && wasUnused && last !== undefined) kept[kept.length - 1] = { ...last, size: last.size * each.size };
      else kept.push(each);
      wasUnused = isUnused;
    }
  }
  return kept;
}

function nestedIn(devices: readonly number[], [, ...inner]: readonly number[]): NestedDevices {
  if (inner.length === 0) return devices;
  const span = elementCount(inner);
  return Array.from({ length: devices.length / span }, (_, i) =>
    nestedIn(devices.slice(i * span, (i + 1) * span), inner),
  );
}

function dimensionsOf(
  reader: InText,
  position: number,
  axis: string,
  size: number,
  cuts: ReadonlySet<number>,
  sizes: Map<string, number>,
): readonly Dimension[] {
  const bounds = [...new Set([1, ...[...cuts].filter((cut) => cut < size), size])].toSorted((a, b) => a - b);
  const isWhole = size >= 1 && bounds.every((bound, i) => i === 0 || bound % at(bounds, i - 1) === 0);
  if (!isWhole) {
    return unsupported(reader, position, {
      message: `the parts of mesh axis ${axis} do not lie in one another`,
      found: `parts that begin or end at ${bounds.join(", ")}`,
      expected: "parts of which each is a multiple of the one before",
      help: "use the same parts of the axis in all shardings",
    });
  }
  if (size === 1) return [];
  const name = plainName(axis);
  return bounds.slice(1).map((bound, i) => {
    const part = bound / at(bounds, i);
    const plain = bounds.length === 2 ? name : `${name}_${i}`;
    // Meshes may have axes of one name and several sizes.
    const own = (sizes.get(plain) ?? part) === part ? plain : `${plain}_${part}`;
    sizes.set(own, part);
    return { name: own, size: part, before: at(bounds, i) };
  });
}

/** Mesh dimensions have names of letters, digits and `_`. */
function plainName(axis: string): string {
  const name = axis.replaceAll(/\W/gu, "_");
  return /^[A-Za-z_]/u.test(name) && !/^(?:DID[a-z]|Stream|Serial)$/u.test(name) ? name : `axis_${name}`;
}

/** `#sdy.sharding<@mesh, [{"x"}, {?}], replicated={"y"}>`, also without the name before `<`. */
export function readSharding(reader: Reader, position: number, attribute: Attribute): Sharding {
  const group = attribute.kind === "named" ? attribute.body : attribute;
  const [meshName, list] = group.kind === "group" ? group.items : [];
  const mesh = meshName === undefined ? null : meshOf(reader, position, meshName);
  if (mesh === null || list?.kind !== "group") {
    return invalidText(reader, position, {
      message: "a sharding has another form",
      found: "no mesh, or no list of axes",
      expected: '#sdy.sharding<@mesh, [{"x"}, {}]>',
    });
  }
  let [isPlaced, hasOpen] = [false, false];
  const axes = list.items.map((item): readonly string[] => {
    const set = item.kind === "sequence" ? item.parts[0] : item;
    if (set?.kind !== "group") return [];
    const refs = set.items.filter((each) => each.kind !== "word");
    isPlaced ||= refs.length > 0;
    hasOpen ||= refs.length < set.items.length;
    return refs.flatMap((ref) => dimensionsIn(reader, position, mesh, ref));
  });
  return { mesh, axes, isOpen: hasOpen && !isPlaced };
}

function meshOf(reader: Reader, position: number, attribute: Attribute): Mesh | null {
  // `mesh<["x"=2]>` in place of a name.
  if (attribute.kind === "named") return readMesh(reader, position, attribute, new Map(), reader.meshes.sizes);
  if (attribute.kind !== "symbol") return null;
  const known = reader.meshes.byName.get(attribute.name);
  if (known !== undefined) return known;
  return invalidText(reader, position, {
    message: `there is no mesh @${attribute.name}`,
    found: `@${attribute.name}`,
    expected: [...reader.meshes.byName.keys()].map((name) => `@${name}`).join(", ") || "an sdy.mesh in the module",
    help: "pass the whole module",
  });
}

/** The dimensions of `"x"` or `"x":(1)2`. */
export function dimensionsIn(reader: Reader, position: number, mesh: Mesh, ref: Attribute): readonly string[] {
  const [name, , before, size] = ref.kind === "sequence" ? ref.parts : [ref];
  const all = name?.kind === "string" ? mesh.axes.get(name.text) : undefined;
  if (all === undefined) {
    return invalidText(reader, position, {
      message: "a sharding names an axis that its mesh does not have",
      found: name?.kind === "string" ? `"${name.text}"` : "an axis of another form",
      expected: [...mesh.axes.keys()].map((axis) => `"${axis}"`).join(", ") || "no axis: the mesh has none",
    });
  }
  if (before === undefined || size === undefined) return all.map((each) => each.name);
  const from = numbersIn(before)?.[0] ?? 1;
  const to = from * (numbersIn(size)?.[0] ?? 1);
  return all.filter((each) => each.before >= from && each.before < to).map((each) => each.name);
}

/**
 * Places a tensor whose first axes, as many as `leading` names, are one per device along these dimensions. The tensor
 * has its whole shape.
 */
export function placeByAxes(tensor: TensorView, { mesh, axes }: Sharding, leading: readonly string[] = []): void {
  const { devices } = mesh;
  if (devices === null) return;
  tensor.setDeviceMesh(devices);
  const { loop } = tensor.data().domain;
  const kept = loop.flatMap(({ iterType }, i) => (iterType === "reduction" ? [] : [i]));
  // From the last axis on, so that splits do not move the axes that follow.
  for (let axis = axes.length - 1; axis >= 0; axis--) {
    at(axes, axis).forEach((name, i) => {
      tensor.outerSplit(at(kept, leading.length + axis) + i, devices.size(name)).parallelize(name);
    });
  }
  placeLeading(tensor, devices, leading);
}

/** As text, to compare. */
export function shardingText({ mesh, axes }: Sharding, leading: readonly string[] = []): string {
  return `${mesh.devices?.toString() ?? ""} ${JSON.stringify([leading, axes])}`;
}
