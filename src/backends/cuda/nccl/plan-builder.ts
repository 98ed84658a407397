/** The plan of a transfer, and its builder, which packs strided views into scratch. */
import type { ReductionOpType } from "../../../ir/ops/op.ts";
import { contiguousStrides, type View } from "../../../commands/view.ts";
import { type DType, dtypes } from "../../../numerics/dtype.ts";
import { elementCount } from "../../../numerics/tensor/host-tensor.ts";

/** One side of a call: a contiguous view, or scratch that replaces a strided one. */
export type Piece =
  | { readonly kind: "view"; readonly view: View }
  /** In bytes, from the start of the stream's scratch. */
  | { readonly kind: "scratch"; readonly offset: number };

/** `P` names memory: a piece, or an address. */
export type NcclCall<P = Piece> =
  | ({ readonly kind: "allGather" } & Moved<P>)
  | ({ readonly kind: "broadcast"; readonly root: number } & Moved<P>)
  | ({ readonly kind: "allReduce" | "reduceScatter" } & Reduced<P>)
  | ({ readonly kind: "reduce"; readonly root: number } & Reduced<P>)
  /** `peer` is a rank of the world. */
  | { readonly kind: "send" | "recv"; readonly piece: P; readonly bytes: number; readonly peer: number };

interface Sides<P> {
  readonly from: P;
  readonly to: P;
}

interface Moved<P> extends Sides<P> {
  readonly bytes: number;
}

export interface Reduced<P = Piece> extends Sides<P> {
  readonly count: number;
  readonly dtype: DType;
  readonly op: ReductionOpType;
}

export interface TransferPlan {
  /** Strided views to scratch, before the calls. */
  readonly packs: readonly PackMove[];
  /** Scratch to fill with neutral elements, the contribution of a root without an input. */
  readonly identities: readonly {
    readonly offset: number;
    readonly count: number;
    readonly dtype: DType;
    readonly op: ReductionOpType;
  }[];
  /** More than one: within ncclGroupStart and ncclGroupEnd. */
  readonly calls: readonly NcclCall[];
  /** Scratch to strided views, after the calls. */
  readonly unpacks: readonly PackMove[];
  readonly scratchBytes: number;
}

export interface PackMove {
  readonly view: View;
  readonly offset: number;
}

export interface PeerView {
  readonly view: View;
  readonly peer: number;
}

export interface PlanBuilder {
  readonly source: (view: View) => Piece;
  readonly destination: (view: View) => Piece;
  readonly identity: (count: number, dtype: DType, op: ReductionOpType) => Piece;
  readonly send: (sent: PeerView) => void;
  readonly receive: (received: PeerView) => void;
  readonly call: (call: NcclCall) => void;
  readonly done: () => TransferPlan;
}

/** Pieces of scratch start at multiples of this, for wide accesses by packing kernels and NCCL. */
const scratchAlignment = 256;

export function createPlan(): PlanBuilder {
  const packs: PackMove[] = [];
  const unpacks: PackMove[] = [];
  const identities: TransferPlan["identities"][number][] = [];
  const calls: NcclCall[] = [];
  let scratchBytes = 0;
  const take = (bytes: number): number => {
    const offset = scratchBytes;
    scratchBytes += Math.ceil(bytes / scratchAlignment) * scratchAlignment;
    return offset;
  };
  const through = (view: View, moves: PackMove[]): Piece => {
    if (isContiguous(view)) return { kind: "view", view };
    const offset = take(viewBytes(view));
    moves.push({ view, offset });
    return { kind: "scratch", offset };
  };
  const builder: PlanBuilder = {
    source: (view) => through(view, packs),
    destination: (view) => through(view, unpacks),
    identity: (count, dtype, op) => {
      const offset = take(count * dtypes[dtype].bytes);
      identities.push({ offset, count, dtype, op });
      return { kind: "scratch", offset };
    },
    send: ({ view, peer }) => {
      calls.push({ kind: "send", piece: builder.source(view), bytes: viewBytes(view), peer });
    },
    receive: ({ view, peer }) => {
      calls.push({ kind: "recv", piece: builder.destination(view), bytes: viewBytes(view), peer });
    },
    call: (made) => {
      calls.push(made);
    },
    done: () => ({ packs, identities, calls, unpacks, scratchBytes }),
  };
  return builder;
}

/** Whether the elements lie side by side in row-major order. */
function isContiguous({ shape, strides }: View): boolean {
  const dense = contiguousStrides(shape);
  return shape.every((extent, axis) => extent === 1 || strides[axis] === dense[axis]);
}

export function viewBytes({ shape, dtype }: View): number {
  return elementCount(shape) * dtypes[dtype].bytes;
}
