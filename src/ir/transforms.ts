/**
 * The domain's transforms: parallel types, splits, merges, mesh and memory order. Each function takes a tensor and
 * returns the changed tensor, and checks the user's arguments. A sharded axis of constant extent must have the mesh's
 * size along its parallel type. `parallelize` and `setDeviceMesh` both check this, so their order does not matter. A
 * symbolic extent is checked once its size is known.
 */
import { makeId, at } from "../support/invariant.ts";
import { type Call, reject } from "./ops/call.ts";
import { type DeviceMesh, devicesAlong, meshShapeText } from "./device-mesh.ts";
import { isDID, type IterDomain, type IterDomainId, type IterType, type ParallelType, type Tensor } from "./domain.ts";
import { didTypes, parallelTypes } from "./parallel-type.ts";
import { printIterDomain, printTensor } from "./print-tensor.ts";
import { constant, type Scalar } from "./scalar/scalar.ts";
import { constantValue, foldCeilDiv, foldMul } from "./scalar/fold.ts";

/** The tensor with the one mesh of others that has a dimension called `name`, if it has none itself. */
export function withNamedMesh(tensor: Tensor, name: string, others: readonly Tensor[]): Tensor {
  if (tensor.mesh !== null || parallelTypes.some((each) => each === name)) return tensor;
  const [mesh, ...more] = others.flatMap(({ mesh: own }) => (own?.hasAxis(name) === true ? [own] : []));
  if (mesh === undefined) return tensor;
  const isOne = more.every((each) => each.equals(mesh) && each.didType(name) === mesh.didType(name));
  return isOne ? { ...tensor, mesh } : tensor;
}

/**
 * The parallel type that a user calls `name`: its own name, or that of a dimension of the tensor's mesh. Axes store the
 * type, so a mesh must be set before its names are used. Throws `bad-argument`.
 */
export function parallelTypeOf(name: string, { id, mesh }: Tensor, place: Call): ParallelType {
  const type = parallelTypes.find((each) => each === name);
  if (type !== undefined) return type;
  if (mesh?.hasAxis(name) === true) return mesh.didType(name);
  const names = mesh?.names ?? [];
  return reject(place, {
    code: "bad-argument",
    message: `${name} is not a parallel type, and T${id} has no mesh${mesh === null ? " yet" : " with such a dimension"}`,
    found: mesh === null ? `${name}, and no mesh` : `${name}, and a mesh of shape ${meshShapeText(mesh)}`,
    expected: [...parallelTypes, ...names].join(", "),
    help:
      mesh === null
        ? `before parallelize, call setDeviceMesh with a mesh that has the name, such as DeviceMesh.of({ dp: 2, tp: 4 })`
        : "use one of these names, or name the dimensions of the mesh with DeviceMesh.of({ dp: 2, tp: 4 })",
  });
}

/** Throws `did-repeated`, `stream-repeated`, `mesh-axis-missing`, `size-contradicts-mesh`. */
export function parallelizeAxis(tensor: Tensor, id: IterDomainId, type: ParallelType, place: Call): Tensor {
  const changed = mapAxes(tensor, (axis) => (axis.id === id ? { ...axis, parallelType: type } : axis));
  requireDistinct(changed, id, type, place);
  if (changed.mesh !== null) requireMeshFits(changed, changed.mesh, place);
  return changed;
}

/** Throws `mesh-axis-missing`, `size-contradicts-mesh`. */
export function setMesh(tensor: Tensor, mesh: DeviceMesh, place: Call): Tensor {
  requireSameNames(tensor, mesh, place);
  requireMeshFits(tensor, mesh, place);
  return { ...tensor, mesh };
}

/** An axis that a name of the old mesh placed would move to another dimension of the new mesh. */
function requireSameNames({ id, domain, mesh: old }: Tensor, mesh: DeviceMesh, place: Call): void {
  if (old === null || old.names.length === 0) return;
  for (const { parallelType } of domain.loop) {
    if (!isDID(parallelType) || old.nameOf(parallelType) === mesh.nameOf(parallelType)) continue;
    reject(place, {
      code: "mesh-axis-missing",
      message: `an axis of T${id} is parallelized with ${old.nameOf(parallelType)}, which is ${parallelType} only on its old mesh`,
      found: `the old mesh ${meshShapeText(old)}, the new mesh ${meshShapeText(mesh)}`,
      expected: `${old.nameOf(parallelType)} at the same place in both`,
      help: "set the mesh once, before parallelize",
    });
  }
}

function requireDistinct(tensor: Tensor, id: IterDomainId, type: ParallelType, place: Call): void {
  if (type === "Serial") return;
  const chosen = tensor.domain.loop.find((axis) => axis.id === id);
  // The partial result of a reduce-scatter carries one DID type on a kept and on a reduced axis.
  const excuses = (axis: IterDomain): boolean =>
    isDID(type) && (axis.iterType === "reduction") !== (chosen?.iterType === "reduction");
  const other = tensor.domain.loop.find((axis) => axis.parallelType === type && axis.id !== id && !excuses(axis));
  if (other === undefined) return;
  const axis = tensor.domain.loop.indexOf(other);
  const name = isDID(type) ? (tensor.mesh?.nameOf(type) ?? type) : type;
  reject(place, type === "Stream" ? "stream-repeated" : "did-repeated", `${name} is on two axes of T${tensor.id}`, {
    found: printTensor(tensor),
    expected: `${name} on at most one axis of a tensor`,
    help: `make axis ${axis} Serial first, T${tensor.id}.axis(${axis}).parallelize("Serial"), or use another parallel type`,
  });
}

/** What `parallelize` takes on the mesh. */
function dimensionsOf(mesh: DeviceMesh): readonly string[] {
  return mesh.names.length > 0 ? mesh.names : didTypes.slice(0, mesh.shape.length);
}

function requireMeshFits(tensor: Tensor, mesh: DeviceMesh, place: Call): void {
  for (const axis of tensor.domain.loop) {
    const type = axis.parallelType;
    if (!isDID(type)) continue;
    if (!mesh.hasAxis(type)) {
      reject(place, {
        code: "mesh-axis-missing",
        message: `an axis of T${tensor.id} is parallelized with ${type}, which its mesh does not have`,
        found: `${mesh.toString()} with ${mesh.shape.length} dimension${mesh.shape.length === 1 ? "" : "s"}`,
        expected: `a mesh with a ${type} dimension`,
        help: `nest the device list deeper, or use ${dimensionsOf(mesh).join(" or ")}`,
      });
    }
    const extent = constantValue(axis.extent);
    const [name, devices] = [mesh.nameOf(type), mesh.size(type)];
    if (extent === null || extent === devices) continue;
    reject(place, {
      code: "size-contradicts-mesh",
      message: `axis ${printIterDomain(axis)} of T${tensor.id} and the mesh differ in size along ${name}`,
      found: `extent ${extent}, ${devicesAlong(mesh, type)}`,
      expected: `extent ${devices}`,
      help: fittingEdit(tensor, axis, { name, devices, extent }),
    });
  }
}

/** An axis of `extent` on `devices` devices. */
interface Misfit {
  /** The mesh's dimension. */
  readonly name: string;
  readonly devices: number;
  readonly extent: number;
}

/** A mesh of one device along the dimension was hardly meant. */
function fittingEdit({ id, domain }: Tensor, axis: IterDomain, { name, devices, extent }: Misfit): string {
  const widerMesh = `give the mesh ${extent} devices along ${name}`;
  if (devices === 1) return widerMesh;
  const isPart = !domain.logical.some((logical) => logical.id === axis.id);
  return isPart
    ? `split into ${devices} parts instead of ${extent}, or ${widerMesh}`
    : `T${id}.outerSplit(${domain.loop.indexOf(axis)}, ${devices}).parallelize("${name}")`;
}

/**
 * Splits the loop axis at `position` in two. `factor` is the extent of the inner axis if `inner` is true, otherwise of
 * the outer. If it does not divide the axis, later parts are shorter or empty (axis-runs.ts). The outer axis gets the
 * number `nextId`, the inner one `nextId + 1`. Throws `bad-argument`.
 */
export function splitAxis(
  tensor: Tensor,
  position: number,
  factor: number,
  inner: boolean,
  nextId: number,
  place: Call,
): Tensor {
  const axis = at(tensor.domain.loop, position);
  requireSerial(axis, "split", place);
  const rest = foldCeilDiv(axis.extent, constant(factor));
  const outer = derived(axis.iterType, inner ? rest : constant(factor), nextId);
  const innerAxis = derived(axis.iterType, inner ? constant(factor) : rest, nextId + 1);
  const { domain } = tensor;
  const split = {
    kind: "split",
    input: axis.id,
    outer: outer.id,
    inner: innerAxis.id,
    factor,
    innerSplit: inner,
  } as const;
  return {
    ...tensor,
    domain: {
      ...domain,
      transforms: [...domain.transforms, split],
      loop: domain.loop.toSpliced(position, 1, outer, innerAxis),
    },
  };
}

/** Merges the loop axes at `position` and `position + 1` into one with the number `nextId`. Throws `bad-argument`. */
export function mergeAxes(tensor: Tensor, position: number, nextId: number, place: Call): Tensor {
  const { domain } = tensor;
  const outer = at(domain.loop, position);
  const inner = at(domain.loop, position + 1);
  requireSerial(outer, "merge", place);
  requireSerial(inner, "merge", place);
  if ((outer.iterType === "reduction") !== (inner.iterType === "reduction")) {
    reject(place, "bad-argument", "a reduced axis is merged with a kept axis", {
      found: `${printIterDomain(outer)} and ${printIterDomain(inner)}`,
      expected: "two kept or two reduced axes",
      help: "merge other axes",
    });
  }
  const iterType = outer.iterType === "broadcast" ? inner.iterType : outer.iterType;
  const output = derived(iterType, foldMul(outer.extent, inner.extent), nextId);
  return {
    ...tensor,
    domain: {
      ...domain,
      transforms: [
        ...domain.transforms,
        { kind: "merge", outer: outer.id, inner: inner.id, output: output.id } as const,
      ],
      loop: domain.loop.toSpliced(position, 2, output),
    },
  };
}

function derived(iterType: IterType, extent: Scalar, id: number): IterDomain {
  return { id: makeId<IterDomainId>(id), extent, iterType, parallelType: "Serial" };
}

function requireSerial(axis: IterDomain, verb: string, place: Call): void {
  if (axis.parallelType === "Serial") return;
  reject(place, "bad-argument", `an axis is parallelized and cannot be ${verb === "split" ? "split" : "merged"}`, {
    found: printIterDomain(axis),
    expected: "a Serial axis",
    help: `${verb} first, then parallelize the result`,
  });
}

/**
 * Sets the order in memory, outermost axis first, from all logical axes or all loop axes. Reduced axes take no memory
 * and may be omitted. Throws `bad-argument`, `axis-repeated`.
 */
export function setAllocation(tensor: Tensor, ids: readonly IterDomainId[], place: Call): Tensor {
  const { logical, loop } = tensor.domain;
  const repeated = ids.find((id, i) => ids.indexOf(id) !== i);
  if (repeated !== undefined) {
    reject(place, "axis-repeated", "an axis is listed twice in an allocation domain", {
      found: `axis number ${repeated}`,
      expected: "each axis once",
      help: "remove one of the two",
    });
  }
  const covers = (axes: readonly IterDomain[]): boolean =>
    ids.every((id) => axes.some((axis) => axis.id === id)) &&
    axes.every((axis) => axis.iterType === "reduction" || ids.includes(axis.id));
  const source = [logical, loop].find(covers);
  if (source === undefined) {
    return reject(place, "bad-argument", `an allocation domain does not cover T${tensor.id}`, {
      found: `${ids.length} of ${loop.length} axes, or axes of different domains`,
      expected: `all axes of ${printTensor(tensor)}, in memory order`,
      help: "list every axis of the tensor, outermost first",
    });
  }
  const allocation = ids.flatMap((id) => source.filter((axis) => axis.id === id));
  return { ...tensor, domain: { ...tensor.domain, allocation } };
}

function mapAxes(tensor: Tensor, change: (axis: IterDomain) => IterDomain): Tensor {
  const { logical, loop, allocation, transforms } = tensor.domain;
  const changed = logical.map(change);
  return {
    ...tensor,
    domain: {
      logical: changed,
      transforms,
      loop: loop === logical ? changed : loop.map(change),
      allocation: allocation?.map(change) ?? null,
    },
  };
}
