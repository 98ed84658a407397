/**
 * Tensors and their axes as data. A TensorView of the API is a handle on a Tensor. Passes and host programs read only
 * this data.
 *
 * logical domain: the axes that the user sees, in order, including reduced axes (as in nvFuser).
 * loop domain: the axes after `split` and `merge`; equal to the logical domain without them.
 * allocation domain: the order in memory; `null` means the order of the logical domain.
 */
import type { DType } from "../numerics/dtype.ts";
import type { CallSite } from "../support/call-site.ts";
import type { Id } from "../support/invariant.ts";
import type { DeviceMesh } from "./device-mesh.ts";
import type { ParallelType } from "./parallel-type.ts";
import { foldProduct } from "./scalar/fold.ts";
import type { Scalar } from "./scalar/scalar.ts";

export { type DIDType, didTypes, isDID, type ParallelType } from "./parallel-type.ts";

export type TensorId = Id<"Tensor">;
export type IterDomainId = Id<"IterDomain">;

export type IterType = "iteration" | "reduction" | "broadcast";
export type MemoryType = "local" | "global" | "symmetric";

/** The properties of an axis that do not depend on its tensor. */
export interface AxisShape {
  readonly extent: Scalar;
  readonly iterType: IterType;
}

/** One axis of one tensor. An IterDomain belongs to exactly one tensor; its id is also its printed number. */
export interface IterDomain extends AxisShape {
  readonly id: IterDomainId;
  readonly parallelType: ParallelType;
}

/** One step from logical axes to loop axes, in the order of the user's calls. */
export type Transform =
  | {
      readonly kind: "split";
      readonly input: IterDomainId;
      readonly outer: IterDomainId;
      readonly inner: IterDomainId;
      readonly factor: number;
      /** If true, `factor` is the inner extent; otherwise the outer. */
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

/** How a tensor of a pass relates to the user's tensor that it was made from. */
export type Relation = "copy" | "chunk" | "partial sum" | "sum" | "parts" | "broadcast";

/** What a tensor is to the user (origin.ts). */
export interface TensorOrigin {
  readonly name?: string;
  /** The constant of the program file that holds it. Dumps and files have names only. */
  readonly constant?: string;
  readonly relation?: Relation;
  /** The call that made it, or made the user's tensor that it was made from. */
  readonly source?: CallSite;
  /** The calls that placed it, or the user's tensor that it was made from, in loops, devices and memory. */
  readonly annotations?: readonly Annotation[];
  /** The call that put Stream on the tensor that this one has it from. */
  readonly streamOf?: Annotation;
}

export interface Annotation {
  /** `setDeviceMesh`, `axis(0).parallelize("Stream")`; of another tensor's Stream, `Stream as on x` */
  readonly call: string;
  readonly source: CallSite;
}

/** `id` is dense per program and is also the printed number: T<id>. */
export interface Tensor {
  readonly id: TensorId;
  readonly dtype: DType;
  readonly memory: MemoryType;
  readonly domain: TensorDomain;
  readonly mesh: DeviceMesh | null;
  /** What it is to the user. Absent if nothing is known. */
  readonly origin?: TensorOrigin;
}

/** The logical axes without the reduced ones: the axes that exist at run time. */
export function withoutReductions(axes: readonly IterDomain[]): readonly IterDomain[] {
  return axes.filter((axis) => axis.iterType !== "reduction");
}

/** Whether the axis is known to have one element. An input's axis of constant extent 1 keeps the iteration type. */
export function isUnitAxis(axis: AxisShape): boolean {
  return axis.iterType === "broadcast" || (axis.extent.kind === "constant" && axis.extent.value === 1);
}

/** A domain without transforms: loop axes equal logical axes, and memory has their order. */
export function plainDomain(logical: readonly IterDomain[]): TensorDomain {
  return { logical, transforms: [], loop: logical, allocation: null };
}

/** The allocation domain in parts: an axis that was split after the order was set stands for its parts. */
export function allocatedAxes({ allocation, loop, transforms }: TensorDomain): readonly IterDomain[] | null {
  if (allocation === null) return null;
  return allocation.flatMap((axis) => {
    let ids: readonly IterDomainId[] = [axis.id];
    for (const each of transforms) {
      if (each.kind === "split") ids = ids.flatMap((id) => (id === each.input ? [each.outer, each.inner] : [id]));
    }
    const parts = ids.flatMap((id) => loop.filter((own) => own.id === id));
    return parts.length === ids.length ? parts : [axis];
  });
}

/**
 * Whether the tensor holds one chunk of an axis: it prints a Stream axis that its logical axes do not have. Only dumps
 * of nvFuser's FusionExecutorCache path have such tensors.
 */
export function isChunk({ domain: { logical, loop, transforms } }: Tensor): boolean {
  const stream = loop.find(({ parallelType }) => parallelType === "Stream");
  if (stream === undefined || logical.some(({ id }) => id === stream.id)) return false;
  return !transforms.some((each) =>
    each.kind === "split" ? each.outer === stream.id || each.inner === stream.id : each.output === stream.id,
  );
}

/**
 * The number of elements of the whole tensor over all devices: the `size` of its Allocate. Factors follow allocation
 * order.
 */
export function allocationSize(tensor: Tensor): Scalar {
  const { allocation, logical } = tensor.domain;
  return foldProduct(withoutReductions(allocation ?? logical).map((axis) => axis.extent));
}
