/** The forms of loops over devices: what an iteration exchanges. point-to-point-form.ts find them. */
import type { DeviceMesh } from "../../ir/device-mesh.ts";
import type { DIDType, IterDomain } from "../../ir/domain.ts";
import type { Scalar } from "../../ir/scalar/scalar.ts";
import type { Chunks } from "../../ir/stream.ts";

interface FormAxes {
  readonly mesh: DeviceMesh;
  readonly type: DIDType;
  /** The axis a of the operand. */
  readonly sharded: IterDomain;
  /** The axis a of the output. */
  readonly stream: IterDomain;
}

/** The axis b of the operand and of the output. */
export interface ScatteredAxis {
  readonly from: IterDomain;
  readonly to: IterDomain;
  /** How it is cut if a device keeps a run of its indices; null if each device keeps one index. */
  readonly chunks: Chunks | null;
}

export type PointToPointForm = FormAxes &
  (
    | {
        readonly kind: "gather";
        /** How many chunks a device's share is: 1, or more if the loop counts chunks of an axis. */
        readonly pieces: number;
        /** The logical axis of the output that the loop slices, and how many slices it has. */
        readonly chunk: IterDomain;
        readonly parts: Scalar;
        /** Whether the slices are chunks, which keep the axis. */
        readonly keepsAxis: boolean;
        /** The axis of which the receiver gets its part, of a share that is one chunk; null if it gets all. */
        readonly scattered: ScatteredAxis | null;
      }
    /** No peer has a whole chunk: each iteration is a gather of the runs that make up the chunk. */
    | { readonly kind: "ranges" }
    | {
        readonly kind: "exchange" | "reduce";
        readonly scattered: ScatteredAxis;
        /** The axis of the output of which a peer's part is one of so many runs; null if it is one index of a. */
        readonly received: { readonly axis: IterDomain; readonly parts: Scalar } | null;
      }
  );

/** A form in which each iteration has one peer, or one root. */
export type PeerForm = Exclude<PointToPointForm, { readonly kind: "ranges" }>;
export type GatherForm = Extract<PointToPointForm, { readonly kind: "gather" }>;
