/** Collectives of manual computations, as ops on the leading axes of parts. */
import { cat, full, reshape, slice } from "../../../ir/api/ops.ts";
import type { TensorView } from "../../../ir/api/tensor-view.ts";
import { at } from "../../../support/invariant.ts";
import { knownValue } from "../constants.ts";
import { groupAxes, type Manual, permutationAlong, rowsIn } from "../groups.ts";
import { attributeOf, number, requireAxes } from "../read-attributes.ts";
import {
  exchangeParts,
  gatherParts,
  labelsOf,
  moved,
  type DevicePart,
  reduceParts,
  scatterParts,
  type ManualSizes,
  spread,
} from "../../manual/parts.ts";
import { madeAt } from "../../origins.ts";
import { computed, cutTo, devicePartOf, sizesOf, type MlirValue } from "../value.ts";
import { placePart } from "./manual.ts";
import { combinerOf } from "./reductions.ts";
import { contradicted, requireTyped, type ReadRow, type Reading, refuse, resultType } from "./reading.ts";
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";

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

/** The result that `make` gives, where it is known to lie. */
function placed(reading: Reading, result: number, make: (sizes: ManualSizes) => DevicePart): MlirValue {
  const { reader, op } = reading;
  const part = madeAt(reader, op.position, () => make(reader.meshes.sizes));
  const type = resultType(reading, result);
  requireTyped(reading, part, type);
  placePart(reading, part.tensor, part.axes, type.shape.length);
  return computed(type, part.axes, part.tensor);
}

function perOperand(read: (reading: Reading, value: MlirValue, result: number) => MlirValue): ReadRow["read"] {
  return (reading) => reading.operands.map((value, i) => read(reading, value, i));
}

function allGather(reading: Reading, value: MlirValue, result: number): MlirValue {
  const { reader, op } = reading;
  const groups = axesOfGroups(reading);
  const dim = number(reader, op, ["all_gather_dim"]);
  requireAxes(reader, op, [dim], value.type.shape.length);
  return placed(reading, result, (sizes) => gatherParts(sizes, devicePartOf(value), groups, dim));
}

function cutPart({ type }: MlirValue, part: DevicePart): DevicePart {
  return { ...part, tensor: cutTo(type, part.tensor) };
}

function allReduce(reading: Reading, value: MlirValue, result: number): MlirValue {
  const groups = axesOfGroups(reading);
  const { reduction } = combinerOf(reading, value.type);
  const refused = (found: string, expected: string): never => refuse(reading, found, expected);
  return placed(reading, result, (sizes) =>
    cutPart(value, reduceParts(sizes, devicePartOf(value), groups, reduction, refused)),
  );
}

/** Throws unless the axis has equal parts for the devices of the groups. */
function requireParts(reading: Reading, extent: number, groups: readonly string[]): void {
  const count = elementCount(sizesOf(reading.reader, groups));
  if (extent % count !== 0) contradicted(reading, `an axis of ${extent} for ${count} devices`, "equal parts");
}

function reduceScatter(reading: Reading, value: MlirValue, result: number): MlirValue {
  const { reader, op } = reading;
  const groups = axesOfGroups(reading);
  const dim = number(reader, op, ["scatter_dimension"]);
  const { shape } = value.type;
  requireAxes(reader, op, [dim], shape.length);
  const { reduction } = combinerOf(reading, value.type);
  requireParts(reading, at(shape, dim), groups);
  return placed(reading, result, (sizes) =>
    cutPart(value, scatterParts(sizes, devicePartOf(value), groups, dim, reduction)),
  );
}

function allToAll(reading: Reading, value: MlirValue, result: number): MlirValue {
  const { reader, op } = reading;
  const groups = axesOfGroups(reading);
  const [splitDim, joinDim] = [number(reader, op, ["split_dimension"]), number(reader, op, ["concat_dimension"])];
  const { shape } = value.type;
  requireAxes(reader, op, [splitDim], shape.length);
  requireAxes(reader, op, [joinDim], shape.length);
  requireParts(reading, at(shape, splitDim), groups);
  return placed(reading, result, (sizes) => exchangeParts(sizes, devicePartOf(value), groups, splitDim, joinDim));
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
  return placed(reading, result, (sizesByName) => {
    const { tensor, axes } = spread(sizesByName, devicePartOf(value), names);
    const labels = [...axes, ...labelsOf(shape)];
    const first = [...names, ...labels.filter((label) => !names.includes(label))];
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
    return { tensor: moved(apart, first, labels, [...sizesOf(reader, axes), ...shape]), axes, shape };
  });
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
