/**
 * Checks a caller's inputs and outputs of a run (counts, dtypes, shapes), and derives whole shapes from shard shapes.
 */
import type { Signature } from "../compile/lower-all.ts";
import { type NamedNumbers, numbersByName } from "../compile/record.ts";
import { fail, type Place } from "../diagnostics/diagnostic.ts";
import { type Tensor as IrTensor, withoutReductions } from "../ir/domain.ts";
import { printTensor } from "../ir/print-tensor.ts";
import { shardsOf } from "../ir/shards.ts";
import { requireMeshSizes, type Sizes, sizesFromMeshes, sizesFromShapes } from "../ir/sizes.ts";
import { isTensor, type Tensor } from "../numerics/tensor/host-tensor.ts";
import { at } from "../support/invariant.ts";
import { counted } from "../support/wording.ts";
import { holders, shardShape } from "./shard.ts";

/**
 * One tensor per rank; null for a rank outside the tensor's mesh. In results, null also stands for a rank of another
 * process.
 */
export type Shards = readonly (Tensor | null)[];

/** An input or output of a run: the whole tensor, or its shards. */
export type TensorArgument = Tensor | Shards;

/** null: what the last run of these sizes left in the input's buffer. */
export type InputArgument = TensorArgument | null;

export function isSharded(argument: TensorArgument): argument is Shards {
  return Array.isArray(argument);
}

export type Role = "input" | "output";

const placeOf = (role: Role, position: number, tensor: IrTensor): Place => ({
  kind: "tensor",
  text: `${role} ${position}, ${printTensor(tensor)}`,
});

export function requireCount(role: Role, tensors: readonly IrTensor[], given: readonly unknown[]): void {
  if (given.length === tensors.length) return;
  fail({
    code: "input-count",
    message: `the program has ${counted(tensors.length, role)}`,
    place: { kind: "call", text: "run(inputs, { outputs })" },
    found: counted(given.length, role),
    expected: `${tensors.length}: ${tensors.map((tensor) => printTensor(tensor)).join(", ")}`,
    help: `pass one tensor, or one list of shards, per ${role} of the program, in order`,
  });
}

/** The whole shape of the argument. Throws `input-shape` and `device-count`. */
export function wholeShape(
  role: Role,
  position: number,
  tensor: IrTensor,
  argument: TensorArgument,
  devices: number,
): readonly number[] {
  if (!isSharded(argument)) {
    requireDType(role, position, tensor, argument);
    requireRank(role, position, tensor, argument);
    return argument.shape;
  }
  if (argument.length !== devices) {
    fail({
      code: "device-count",
      message: `${role} ${position} does not have one shard per device`,
      place: placeOf(role, position, tensor),
      found: `${argument.length} shards`,
      expected: `${devices}, null for devices outside the tensor's mesh`,
      help: "pass one shard per device, or the whole tensor",
    });
  }
  const shapes = new Map<number, readonly number[]>();
  for (const device of tensor.mesh?.devices ?? [0]) {
    const shard = argument[device] ?? null;
    if (shard === null) return missingShard(role, position, tensor, device);
    requireDType(role, position, tensor, shard);
    requireRank(role, position, tensor, shard);
    shapes.set(device, shard.shape);
  }
  return unshardedShape(tensor, shapes);
}

/** Throws `input-shape` unless every shard has the local shape that follows from the whole shape. */
export function requireShardShapes(
  role: Role,
  position: number,
  tensor: IrTensor,
  shape: readonly number[],
  argument: TensorArgument,
): void {
  if (!isSharded(argument)) return requireSameShape(role, position, tensor, shape, argument.shape, null);
  for (const device of tensor.mesh?.devices ?? [0]) {
    const shard = argument[device] ?? null;
    if (shard === null) missingShard(role, position, tensor, device);
    else requireSameShape(role, position, tensor, shardShape(tensor, shape, device), shard.shape, device);
  }
}

/** The whole shape: along each axis, the sum of the shards of the devices that differ only in how they cut it. */
function unshardedShape(tensor: IrTensor, shapes: ReadonlyMap<number, readonly number[]>): readonly number[] {
  const { mesh } = tensor;
  const shards = shardsOf(tensor);
  const devices = mesh?.devices ?? [0];
  return withoutReductions(tensor.domain.logical).map(({ id }, position) => {
    const [types, others] = [true, false].map((own) =>
      shards.flatMap(({ axis, type }) => ((axis.id === id) === own && mesh?.hasAxis(type) === true ? [type] : [])),
    );
    const seen = new Set<string>();
    let extent = 0;
    for (const device of devices) {
      if (others?.some((type) => mesh?.coordinate(device, type) !== 0) === true) continue;
      const share = types?.map((type) => mesh?.coordinate(device, type)).join(",") ?? "";
      if (seen.has(share)) continue;
      seen.add(share);
      extent += shapes.get(device)?.[position] ?? 0;
    }
    return extent;
  });
}

function requireDType(role: Role, position: number, tensor: IrTensor, given: Tensor): void {
  if (!isTensor(given)) {
    fail({
      code: "input-shape",
      message: `${role} ${position} is not a tensor`,
      place: placeOf(role, position, tensor),
      found: typeof given,
      expected: "{ dtype, shape, data } with data of the dtype's typed array, one element per index",
      help: "make it with Tensor.from(values, dtype) or Tensor.zeros(shape, dtype)",
    });
  }
  if (given.dtype === tensor.dtype) return;
  fail({
    code: "input-shape",
    message: `${role} ${position} does not have the program's dtype`,
    place: placeOf(role, position, tensor),
    found: given.dtype,
    expected: tensor.dtype,
    help: "make the tensor with the expected dtype, or add a cast to the program",
  });
}

function requireRank(role: Role, position: number, tensor: IrTensor, given: Tensor): void {
  const rank = withoutReductions(tensor.domain.logical).length;
  if (given.shape.length === rank) return;
  fail({
    code: "input-shape",
    message: `${role} ${position} does not have the program's number of axes`,
    place: placeOf(role, position, tensor),
    found: `shape [${given.shape.join(", ")}]`,
    expected: `${rank} axes`,
    help: "pass a tensor with the expected number of axes",
  });
}

function requireSameShape(
  role: Role,
  position: number,
  tensor: IrTensor,
  expected: readonly number[],
  found: readonly number[],
  device: number | null,
): void {
  if (expected.length === found.length && expected.every((extent, i) => extent === found[i])) return;
  fail({
    code: "input-shape",
    message: `${role} ${position} has the wrong shape${device === null ? "" : ` on device ${device}`}`,
    place: placeOf(role, position, tensor),
    found: `[${found.join(", ")}]`,
    expected: `[${expected.join(", ")}]`,
    help:
      device === null
        ? "pass a tensor of the expected shape"
        : "pass the shard of the expected shape, or the whole tensor",
  });
}

function missingShard(role: Role, position: number, tensor: IrTensor, device: number): never {
  fail({
    code: "input-shape",
    message: `${role} ${position} has no shard for device ${device}, which is in its mesh`,
    place: placeOf(role, position, tensor),
    found: "null",
    expected: `a shard for each of (${holders(tensor).join(" ")})`,
    help: "pass the shard, or the whole tensor",
  });
}

// Determines the sizes of a run from its inputs, the meshes and the sizes given by name. Each set of sizes has its own
// Program.

export interface RunSizes {
  readonly sizes: Sizes;
  readonly scalars: ReadonlyMap<string, number>;
}

/** Throws `input-count`, `input-shape`, `device-count`, `size-mismatch` and `size-contradicts-mesh`. */
export function runSizes(
  { tensors: all, inputs: ids }: Signature,
  inputs: readonly InputArgument[],
  devices: number,
  given: { readonly sizes?: NamedNumbers; readonly scalars?: NamedNumbers },
): RunSizes {
  const tensors = ids.map((id) => at(all, id));
  requireCount("input", tensors, inputs);
  const known = tensors.flatMap((tensor, i) => {
    const argument = at(inputs, i);
    return argument === null ? [] : [{ tensor, i, argument, shape: wholeShape("input", i, tensor, argument, devices) }];
  });
  const shapes = known.map(({ shape }) => shape);
  const sizes = new Map([
    ...sizesFromMeshes(all),
    ...numbersByName(given.sizes),
    ...sizesFromShapes(
      known.map(({ tensor }) => tensor),
      shapes,
    ),
  ]);
  requireMeshSizes(all, sizes);
  for (const { tensor, i, argument, shape } of known) requireShardShapes("input", i, tensor, shape, argument);
  return { sizes, scalars: numbersByName(given.scalars) };
}

/** Equal for equal sizes and scalars, in any order. */
export function sizesKey(sizes: Sizes, scalars: ReadonlyMap<string, number>): string {
  const sorted = (numbers: ReadonlyMap<string, number>): string =>
    [...numbers]
      .map((entry) => entry.join("="))
      .sort()
      .join(" ");
  return `${sorted(sizes)} scalars ${sorted(scalars)}`;
}
