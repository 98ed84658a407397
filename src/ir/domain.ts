/**
 * Tensors and their axes as data. A TensorView of the API is a handle on a Tensor here; passes and host
 * programs read only this data.
 *
 * logical domain: what the user sees, in order, reduced axes included (as in nvFuser).
 * loop domain: after `split` and `merge`; equal to the logical domain while there are none.
 * allocation domain: order in memory; `null` means the logical order.
 */
import type { DType } from "../numerics/dtype.ts";
import type { Id } from "../support/ids.ts";
import type { DeviceMesh, DIDType } from "./device-mesh.ts";
import { foldProduct } from "./scalar/fold.ts";
import type { Scalar } from "./scalar/scalar.ts";

export type { DIDType };

export type TensorId = Id<"Tensor">;
export type IterDomainId = Id<"IterDomain">;

export type IterType = "iteration" | "reduction" | "broadcast";
export type MemoryType = "local" | "global" | "symmetric";

/**
 * What runs the indices of an axis: nothing in particular (Serial), one iteration each of a host loop over streams (Stream), or one
 * device each along a dimension of the mesh (DIDx, DIDy, DIDz).
 */
export type ParallelType = "Serial" | "Stream" | DIDType;

export const didTypes: readonly DIDType[] = ["DIDx", "DIDy", "DIDz"];

/** Whether the type distributes an axis over devices. */
export function isDID(type: ParallelType): type is DIDType {
  return type === "DIDx" || type === "DIDy" || type === "DIDz";
}

/** An axis before it belongs to a tensor. */
export interface AxisShape {
  readonly extent: Scalar;
  readonly iterType: IterType;
}

/** One axis of one tensor. An IterDomain belongs to exactly one tensor; its id is also its printed number. */
export interface IterDomain extends AxisShape {
  readonly id: IterDomainId;
  readonly parallelType: ParallelType;
}

/** How loop axes were made from logical ones, in the order of the calls. */
export type Transform =
  | {
      readonly kind: "split";
      readonly input: IterDomainId;
      readonly outer: IterDomainId;
      readonly inner: IterDomainId;
      readonly factor: number;
      /** true: `factor` is the inner extent. */
      readonly innerSplit: boolean;
    }
  | {
      readonly kind: "merge";
      readonly outer: IterDomainId;
      readonly inner: IterDomainId;
      readonly output: IterDomainId;
    };

export interface TensorDomain {
  readonly logical: readonly IterDomain[];
  readonly transforms: readonly Transform[];
  readonly loop: readonly IterDomain[];
  readonly allocation: readonly IterDomain[] | null;
}

/** `id` is dense per program and is also the printed number: T<id>. */
export interface Tensor {
  readonly id: TensorId;
  readonly dtype: DType;
  readonly memory: MemoryType;
  readonly domain: TensorDomain;
  readonly mesh: DeviceMesh | null;
}

/** The logical axes that exist at run time: all but the reduced ones. */
export function withoutReductions(axes: readonly IterDomain[]): readonly IterDomain[] {
  return axes.filter((axis) => axis.iterType !== "reduction");
}

/** Whether the axis is known to have one element. An input axis of constant extent 1 stays an iteration axis. */
export function isUnitAxis(axis: AxisShape): boolean {
  return axis.iterType === "broadcast" || (axis.extent.kind === "constant" && axis.extent.value === 1);
}

/** A domain whose loop axes are its logical axes and which lies in memory in that order. */
export function plainDomain(logical: readonly IterDomain[]): TensorDomain {
  return { logical, transforms: [], loop: logical, allocation: null };
}

/** The number of elements of the whole tensor, all devices' shards included: the `size` of its Allocate, in allocation order. */
export function allocationSize(tensor: Tensor): Scalar {
  const { allocation, logical } = tensor.domain;
  return foldProduct(withoutReductions(allocation ?? logical).map((axis) => axis.extent));
}
