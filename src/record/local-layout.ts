/**
 * How a tensor lies on one rank: along a DID axis a device holds one index, reduced axes are gone, and the buffer is contiguous
 * in the order of the allocation domain.
 */
import { stridesInOrder } from "../commands/view.ts";
import { fail, type Place } from "../diagnostics/diagnostic.ts";
import { isDID, type IterDomain, type Tensor, withoutReductions } from "../ir/domain.ts";
import { printIterDomain, printTensor } from "../ir/print-tensor.ts";
import { evaluateScalar } from "../ir/scalar.ts";
import { printScalar } from "../ir/scalar-print.ts";

export interface Layout {
  /** Elements per logical axis, without reductions. */
  readonly shape: readonly number[];
  /** In elements, of a buffer of its own. */
  readonly strides: readonly number[];
}

export type SizeOf = (name: string) => number | undefined;

/**
 * `inputs` are the program's, to say where a missing size comes from. Throws `size-missing`, `bad-extent`, `mesh-axis-missing`,
 * `size-contradicts-mesh`, `did-on-split-axis` and `allocation-on-split-axis`.
 */
export function localLayout(tensor: Tensor, sizeOf: SizeOf, inputs: readonly Tensor[]): Layout {
  const { logical, loop, allocation } = tensor.domain;
  const split = loop.find((axis) => isDID(axis.parallelType) && !logical.some(({ id }) => id === axis.id));
  if (split !== undefined) rejectSplit(tensor, split);
  const axes = withoutReductions(logical);
  const shape = axes.map((axis) => localSize(tensor, axis, sizeOf, inputs));
  const order = allocation === null ? axes : withoutReductions(allocation);
  const positions = order.map(({ id }) => axes.findIndex((axis) => axis.id === id));
  if (positions.length !== axes.length || positions.includes(-1)) rejectAllocation(tensor, order);
  return { shape, strides: stridesInOrder(shape, positions) };
}

function placeOf(tensor: Tensor): Place {
  return { kind: "tensor", text: printTensor(tensor) };
}

function localSize(tensor: Tensor, axis: IterDomain, sizeOf: SizeOf, inputs: readonly Tensor[]): number {
  const size = evaluateScalar(axis.extent, sizeOf) ?? missingSize(tensor, axis, inputs);
  if (!Number.isSafeInteger(size) || size < 1) {
    fail({
      code: "bad-extent",
      message: `axis ${printIterDomain(axis)} is not a whole number of elements long`,
      place: placeOf(tensor),
      found: String(size),
      expected: "a whole number of at least 1",
      help: "give sizes that divide as the program asks",
    });
  }
  const { parallelType } = axis;
  if (!isDID(parallelType)) return size;
  const along = `along ${parallelType}`;
  if (tensor.mesh?.hasAxis(parallelType) !== true) {
    return fail({
      code: "mesh-axis-missing",
      message: `axis ${printIterDomain(axis)} is sharded ${along}, which the tensor's mesh does not have`,
      place: placeOf(tensor),
      found: tensor.mesh === null ? "no mesh" : tensor.mesh.toString(),
      expected: `a mesh with a dimension for ${parallelType}`,
      help: "set a DeviceMesh that is nested deep enough",
    });
  }
  const devices = tensor.mesh.size(parallelType);
  if (size === devices) return 1;
  return fail({
    code: "size-contradicts-mesh",
    message: `axis ${printIterDomain(axis)} has another size than the mesh ${along}`,
    place: placeOf(tensor),
    found: `size ${size}, ${devices} device${devices === 1 ? "" : "s"} ${along}`,
    expected: `size ${devices}`,
    help: "give the sharded axis the size of the mesh",
  });
}

function missingSize(tensor: Tensor, axis: IterDomain, inputs: readonly Tensor[]): never {
  const extent = printScalar(axis.extent);
  const holders = inputs.filter(({ domain }) => domain.logical.some((own) => printScalar(own.extent) === extent));
  return fail({
    code: "size-missing",
    message: `${extent} has no size`,
    place: placeOf(tensor),
    found: `axis ${printIterDomain(axis)} without a size`,
    expected: `a size for ${extent}`,
    help:
      holders.length === 0
        ? `give ${extent} a size, by the extent's printed name`
        : `give ${extent} a size: it is an extent of ${holders.map((each) => printTensor(each)).join(" and ")}`,
  });
}

function rejectSplit(tensor: Tensor, axis: IterDomain): never {
  return fail({
    code: "did-on-split-axis",
    message: `${axis.parallelType} stands on an axis made by split or merge, which is not lowered yet`,
    place: placeOf(tensor),
    found: printIterDomain(axis),
    expected: `${axis.parallelType} on a whole logical axis`,
    help: "shape the tensor with the devices as an axis of its own, and shard that axis",
  });
}

function rejectAllocation(tensor: Tensor, order: readonly IterDomain[]): never {
  return fail({
    code: "allocation-on-split-axis",
    message: "an allocation domain has an axis made by split or merge, which is not recorded yet",
    place: placeOf(tensor),
    found: `[${order.map((axis) => printIterDomain(axis)).join(", ")}]`,
    expected: "the logical axes, in any order",
    help: "reshape the tensor so that the parts are axes of their own",
  });
}
