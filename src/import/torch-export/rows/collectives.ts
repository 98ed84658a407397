/**
 * Collectives of a model that was exported in parallel. The graph computes one rank's parts: the result of a collective
 * is an input of that program, until manual-model.ts makes one program of all ranks of it.
 */
import { div } from "../../../ir/api/ops/elementwise.ts";
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";
import { at } from "../../../support/invariant.ts";
import {
  exchangeParts,
  gatherParts,
  type DevicePart,
  partAt,
  readExtents,
  type PartReduction,
  reduceParts,
  scatterParts,
  sizesAlong,
  type ManualSizes,
} from "../../manual/parts.ts";
import type { Size } from "../graph.ts";
import type { RunOnParts } from "../group-collective.ts";
import type { NodeOperands } from "../operands.ts";
import { type AtenRow, atenRows, type AtenRows } from "./row.ts";

interface Collective {
  readonly size: number | null;
  /** Of the result, for a rank's part. */
  readonly shape: (part: readonly number[], size: number) => readonly number[];
  readonly run: RunOnParts;
}

const same: Collective["shape"] = (part) => part;

/** The inputs of a rank's program that are results of the collective. */
function collectiveRow(read: (o: NodeOperands) => Collective): AtenRow {
  return (o) => {
    const { size, shape, run } = read(o);
    const group = o.text("group_name", "");
    return o.tensors(o.has("inputs") ? "inputs" : "input").map((operand) => {
      const part = readExtents(operand);
      if (part.some(Number.isNaN)) return o.refuse("sizes that export left open", "constant sizes");
      if (part.length === 0 && shape !== same) return o.refuse("a tensor without axes", "at least one axis");
      const result = o.fusion.input(shape(part, size ?? 1), operand.dtype);
      o.building.collectives.set(result.id, { node: o.node, operand, group, size, run });
      return result;
    });
  };
}

const reductions: ReadonlyMap<string, PartReduction> = new Map([
  ["sum", "sum"],
  ["avg", "sum"],
  ["max", "amax"],
  ["min", "amin"],
  ["product", "prod"],
]);

function reductionOf(o: NodeOperands): { readonly name: string; readonly reduction: PartReduction } {
  const name = o.text("reduce_op", "sum");
  return { name, reduction: reductions.get(name) ?? o.refuse(name, [...reductions.keys()].join(", ")) };
}

/** A mean is a sum, divided by the number of ranks. */
function averaged(name: string, part: DevicePart, sizes: ManualSizes, dims: readonly string[]): DevicePart {
  return name === "avg" ? { ...part, tensor: div(part.tensor, elementCount(sizesAlong(sizes, dims))) } : part;
}

const allGather = (o: NodeOperands): Collective => ({
  size: o.whole("group_size"),
  shape: (part, size) => part.with(0, at(part, 0) * size),
  run: (sizes, part, dims) => gatherParts(sizes, part, dims, 0),
});

const allReduce = (o: NodeOperands): Collective => {
  const { name, reduction } = reductionOf(o);
  return {
    size: null,
    shape: same,
    run: (sizes, part, dims) => averaged(name, reduceParts(sizes, part, dims, reduction, o.refuse), sizes, dims),
  };
};

const reduceScatter = (o: NodeOperands): Collective => {
  const { name, reduction } = reductionOf(o);
  return {
    size: o.whole("group_size"),
    shape: (part, size) => part.with(0, evenly(o, part, 0, size)),
    run: (sizes, part, dims) => averaged(name, scatterParts(sizes, part, dims, 0, reduction), sizes, dims),
  };
};

function evenly(o: NodeOperands, part: readonly number[], dim: number, size: number): number {
  const piece = (part[dim] ?? 1) / size;
  return Number.isInteger(piece) ? piece : o.refuse(`an axis of ${part[dim] ?? 1} for ${size} ranks`, "equal parts");
}

const allToAll = (o: NodeOperands): Collective => {
  const splits = [...o.wholes("input_split_sizes"), ...o.wholes("output_split_sizes")];
  if (splits.some((each) => each !== splits[0])) o.refuse("parts of different sizes", "equal parts");
  return {
    size: splits.length / 2,
    shape: same,
    run: (sizes, part, dims) => exchangeParts(sizes, part, dims, 0, 0),
  };
};

/** DTensor's step from one sharded axis to another. */
const shardDimAllToAll = (o: NodeOperands): Collective => {
  const [joined, split] = [o.whole("gather_dim"), o.whole("shard_dim")];
  const sizeOf = (sizes: readonly Size[], axis: number): number => Number(sizes[axis] ?? 1);
  const size =
    readExtents(o.tensor("input")).map((extent, axis) => extent / sizeOf(o.sizesOf(0) ?? [], axis))[split] ?? 1;
  return {
    size,
    shape: (part) => part.with(split, evenly(o, part, split, size)).with(joined, (part[joined] ?? 1) * size),
    run: (sizes, part, dims) => exchangeParts(sizes, part, dims, split, joined),
  };
};

/** Of a rank of the group. */
const broadcast = (o: NodeOperands): Collective => {
  const source = o.whole("src");
  return { size: null, shape: same, run: (sizes, part, dims) => partAt(sizes, part, dims, source) };
};

const wait: AtenRow = (o) => o.tensor("tensor");

const autograd = {
  "all_gather_into_tensor.default(input group_size group_name)": collectiveRow(allGather),
  "reduce_scatter_tensor.default(input reduce_op group_size group_name)": collectiveRow(reduceScatter),
  "all_to_all_single.default(input output_split_sizes input_split_sizes group_name)": collectiveRow(allToAll),
};

export const groupCollectiveRows: AtenRows = new Map([
  ...atenRows(
    {
      ...autograd,
      "all_reduce.default(input reduce_op group_name)": collectiveRow(allReduce),
      "all_reduce_coalesced.default(inputs reduce_op group_name)": collectiveRow(allReduce),
      "all_gather_into_tensor_coalesced.default(inputs group_size group_name)": collectiveRow(allGather),
      "reduce_scatter_tensor_coalesced.default(inputs reduce_op group_size group_name)": collectiveRow(reduceScatter),
      "broadcast.default(input src group_name)": collectiveRow(broadcast),
      "wait_tensor.default(tensor)": wait,
      "_wrap_tensor_autograd.default(input)": (o) => o.tensor("input"),
    },
    "torch.ops._c10d_functional.",
  ),
  ...atenRows(autograd, "torch.ops._c10d_functional_autograd."),
  ...atenRows(
    { "shard_dim_alltoall.default(input gather_dim shard_dim group_name)": collectiveRow(shardDimAllToAll) },
    "torch.ops._dtensor.",
  ),
]);
