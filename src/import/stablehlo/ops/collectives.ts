/** Collectives of manual computations, as ops on the leading axes of parts (manual.ts). */
import { cat, full, mul, permute, reshape, slice } from "../../../ir/api/ops.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { at } from "../../../support/invariant.ts";
import { knownValue } from "../constants.ts";
import { groupAxes, type Manual, permutationAlong, rowsIn } from "../groups.ts";
import { attributeOf, number, requireAxes } from "../read-attributes.ts";
import { readExtents } from "../reader.ts";
import { manualAxes, sizesOf, type MlirValue, wholeOn } from "../value.ts";
import { placePart } from "./manual.ts";
import { combinerOf, reduceWith } from "./reductions.ts";
import { contradicted, madeValue, type ReadRow, type Reading, refuse, resultType } from "./reading.ts";
import { elementCount } from "../../../numerics/tensor/storage.ts";

function manualOf(reading: Reading): Manual {
  return (
    reading.manual ??
    refuse(
      reading,
      "a collective outside of a manual computation",
      "collectives inside of sdy.manual_computation, where it is known which devices take part",
      "write the function with jax.shard_map, or leave the collectives to shardings",
    )
  );
}

/** The dimensions of the collective's groups. */
function axesOfGroups(reading: Reading): readonly string[] {
  const { reader, op } = reading;
  const manual = manualOf(reading);
  const found = groupAxes(reader, op.position, manual, attributeOf(op, "replica_groups"));
  if (found !== null && found.every((name) => manual.names.includes(name))) return found;
  return refuse(reading, "groups of other devices", "groups along manual axes of the mesh");
}

/** The part as a tensor with a leading axis for each dimension of the groups, and the names of all leading axes. */
function spread(
  reading: Reading,
  value: MlirValue,
  groups: readonly string[],
): { readonly tensor: TensorView; readonly axes: readonly string[] } {
  const { reader } = reading;
  const axes = manualAxes(reader, [{ ...value, axes: [...new Set([...value.axes, ...groups])] }]);
  return { tensor: wholeOn(reader, value, axes, true), axes };
}

/** [axes of `from`] as [axes of `to`], which are the same in another order and joined as `shape` says. */
function moved(
  tensor: TensorView,
  from: readonly string[],
  to: readonly string[],
  shape: readonly number[],
): TensorView {
  const order = to.map((label) => from.indexOf(label));
  const permuted = order.every((axis, i) => axis === i) ? tensor : permute(tensor, order);
  return readExtents(permuted).length === shape.length ? permuted : reshape(permuted, shape);
}

const labelsOf = (shape: readonly number[]): readonly string[] => shape.map((_, i) => String(i));

/** The result with the leading axes `axes`, where it is known to lie. */
function placed(reading: Reading, axes: readonly string[], make: () => TensorView, result = 0): MlirValue {
  const { length: rank } = resultType(reading, result).shape;
  return madeValue(
    reading,
    axes,
    () => {
      const tensor = make();
      placePart(reading, tensor, axes, rank);
      return tensor;
    },
    null,
    result,
  );
}

function perOperand(read: (reading: Reading, value: MlirValue, result: number) => MlirValue): ReadRow["read"] {
  return (reading) => reading.operands.map((value, i) => read(reading, value, i));
}

function allGather(reading: Reading, value: MlirValue, result: number): MlirValue {
  const { reader, op } = reading;
  const groups = axesOfGroups(reading);
  const dim = number(reader, op, ["all_gather_dim"]);
  const { shape } = value.type;
  requireAxes(reader, op, [dim], shape.length);
  const { tensor, axes } = spread(reading, value, groups);
  const rest = axes.filter((name) => !groups.includes(name));
  const to = [...rest, ...labelsOf(shape).flatMap((label, i) => (i === dim ? [...groups, label] : [label]))];
  const size = elementCount(sizesOf(reader, groups));
  const whole = [...sizesOf(reader, rest), ...shape.with(dim, at(shape, dim) * size)];
  return placed(reading, rest, () => moved(tensor, [...axes, ...labelsOf(shape)], to, whole), result);
}

function allReduce(reading: Reading, value: MlirValue, result: number): MlirValue {
  const groups = axesOfGroups(reading);
  const combiner = combinerOf(reading, value.type);
  const own = value.axes.filter((name) => groups.includes(name));
  const same = elementCount(
    sizesOf(
      reading.reader,
      groups.filter((name) => !own.includes(name)),
    ),
  );
  const rest = value.axes.filter((name) => !own.includes(name));
  return placed(
    reading,
    rest,
    () => {
      const tensor = wholeOn(reading.reader, value, value.axes, true);
      const reduced = reduceWith(
        tensor,
        combiner,
        own.map((name) => value.axes.indexOf(name)),
      );
      // Parts that do not differ are added as often as there are devices.
      if (same === 1 || combiner.reduction === "amax" || combiner.reduction === "amin") return reduced;
      return combiner.reduction === "sum"
        ? mul(reduced, same)
        : refuse(reading, "a product of equal parts", "parts that differ");
    },
    result,
  );
}

function reduceScatter(reading: Reading, value: MlirValue, result: number): MlirValue {
  const { reader, op } = reading;
  const groups = axesOfGroups(reading);
  const dim = number(reader, op, ["scatter_dimension"]);
  const { shape } = value.type;
  requireAxes(reader, op, [dim], shape.length);
  const combiner = combinerOf(reading, value.type);
  const sizes = sizesOf(reader, groups);
  const part = at(shape, dim) / elementCount(sizes);
  if (!Number.isInteger(part))
    contradicted(reading, `an axis of ${at(shape, dim)} for ${elementCount(sizes)} devices`, "equal parts");
  const { tensor, axes } = spread(reading, value, groups);
  return placed(
    reading,
    axes,
    () => {
      const split = shape.flatMap((extent, i) => (i === dim ? [...sizes, part] : [extent]));
      const apart = reshape(tensor, [...sizesOf(reader, axes), ...split]);
      const reduced = reduceWith(
        apart,
        combiner,
        groups.map((name) => axes.indexOf(name)),
      );
      const rest = axes.filter((name) => !groups.includes(name));
      const from = [...rest, ...labelsOf(shape).flatMap((label, i) => (i === dim ? [...groups, label] : [label]))];
      return moved(reduced, from, [...axes, ...labelsOf(shape)], readExtents(reduced));
    },
    result,
  );
}

/** The parts along the split axis go to the devices of the group, which join what they get along the other axis. */
function allToAll(reading: Reading, value: MlirValue, result: number): MlirValue {
  const { reader, op } = reading;
  const groups = axesOfGroups(reading);
  const [splitDim, joinDim] = [number(reader, op, ["split_dimension"]), number(reader, op, ["concat_dimension"])];
  const { shape } = value.type;
  requireAxes(reader, op, [splitDim], shape.length);
  requireAxes(reader, op, [joinDim], shape.length);
  const sizes = sizesOf(reader, groups);
  const size = elementCount(sizes);
  const part = at(shape, splitDim) / size;
  if (!Number.isInteger(part))
    contradicted(reading, `an axis of ${at(shape, splitDim)} for ${size} devices`, "equal parts");
  const { tensor, axes } = spread(reading, value, groups);
  return placed(
    reading,
    axes,
    () => {
      const split = shape.flatMap((extent, i) => (i === splitDim ? [...sizes, part] : [extent]));
      const apart = reshape(tensor, [...sizesOf(reader, axes), ...split]);
      const receivers = groups.map((name) => `to ${name}`);
      const from = [
        ...axes,
        ...labelsOf(shape).flatMap((label, i) => (i === splitDim ? [...receivers, label] : [label])),
      ];
      const leading = axes.map((name) => (groups.includes(name) ? `to ${name}` : name));
      const to = [...leading, ...labelsOf(shape).flatMap((label, i) => (i === joinDim ? [...groups, label] : [label]))];
      const joined = shape.with(splitDim, part);
      return moved(apart, from, to, [...sizesOf(reader, axes), ...joined.with(joinDim, at(joined, joinDim) * size)]);
    },
    result,
  );
}

/** Who gets nothing has zeros. */
function collectivePermute(reading: Reading, value: MlirValue, result: number): MlirValue {
  const { reader, op } = reading;
  const attribute = attributeOf(op, "source_target_pairs");
  const pairs = attribute?.kind === "named" ? rowsIn(attribute.body) : [];
  const permutation = permutationAlong(manualOf(reading), pairs);
  if (permutation === null)
    return refuse(
      reading,
      "pairs of other devices",
      "the same pairs along manual axes of the mesh, for all other devices",
    );
  const { names, sources } = permutation;
  const { shape } = value.type;
  const { tensor, axes } = spread(reading, value, names);
  const labels = [...axes, ...labelsOf(shape)];
  const first = [...names, ...labels.filter((label) => !names.includes(label))];
  return placed(
    reading,
    axes,
    () => {
      const rest = axes.filter((name) => !names.includes(name));
      const tail = [...sizesOf(reader, rest), ...shape];
      const lined = moved(tensor, labels, first, [sources.length, ...tail]);
      const pieces: TensorView[] = [];
      for (let to = 0; to < sources.length;) {
        const from = sources[to] ?? null;
        let length = 1;
        while (to + length < sources.length && follows(sources[to + length] ?? null, from, length)) length++;
        pieces.push(
          from === null
            ? full(reader.fusion, [length, ...tail], 0, tensor.dtype)
            : slice(lined, [from, ...tail.map(() => 0)], [from + length, ...tail]),
        );
        to += length;
      }
      const joined = pieces.length === 1 ? at(pieces, 0) : cat(pieces, 0);
      const apart = names.length === 1 ? joined : reshape(joined, [...sizesOf(reader, names), ...tail]);
      return moved(apart, first, labels, [...sizesOf(reader, axes), ...shape]);
    },
    result,
  );
}

function follows(next: number | null, first: number | null, distance: number): boolean {
  return first === null ? next === null : next === first + distance;
}

/** The position of the device in the mesh, which the file knows for each of them. */
function partitionId(reading: Reading): readonly MlirValue[] {
  const { mesh } = manualOf(reading);
  const axes = mesh.devices?.names ?? [];
  const sizes = sizesOf(reading.reader, axes);
  const known = Array.from({ length: elementCount(sizes) }, (_, i) => BigInt(mesh.devices?.devices[i] ?? i));
  return [knownValue(reading.reader, resultType(reading), axes, known)];
}

export const collectiveRows: Readonly<Record<string, ReadRow>> = {
  "stablehlo.all_gather": { read: perOperand(allGather) },
  "stablehlo.all_reduce": { read: perOperand(allReduce) },
  "stablehlo.reduce_scatter": { read: perOperand(reduceScatter) },
  "stablehlo.all_to_all": { read: perOperand(allToAll) },
  "stablehlo.collective_permute": { read: perOperand(collectivePermute) },
  "stablehlo.partition_id": { read: partitionId },
};
