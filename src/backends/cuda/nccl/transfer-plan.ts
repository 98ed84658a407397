/**
 * A transfer as NCCL takes it: one call for the collectives that NCCL has, a group of sends and receives for the others, over contiguous memory. What is not
 * contiguous is packed into scratch before and unpacked after. Pure: which calls with which pieces; transfer-actions.ts makes them.
 *
 *     Gather at the root          group: recv from every member that has an input (own part: send to itself)
 *     ReduceScatter, strided out  reduceScatter(input, scratch); unpack scratch -> output
 */
import type { Collective, PointToPointGroup, View } from "../../../commands/transfer.ts";
import { contiguousStrides, elementCount, partOf } from "../../../commands/view.ts";
import type { ReductionOpType } from "../../../ir/ops/op.ts";
import { type DType, dtypes } from "../../../numerics/dtype.ts";
import { at, invariant } from "../../../support/invariant.ts";

/** A side of a call: a contiguous view as it is, or scratch that stands for a strided one. */
export type Piece =
  | { readonly kind: "view"; readonly view: View }
  /** In bytes from the start of the stream's scratch. */
  | { readonly kind: "scratch"; readonly offset: number };

export type NcclCall =
  | { readonly kind: "allGather"; readonly from: Piece; readonly to: Piece; readonly bytes: number }
  | {
      readonly kind: "broadcast";
      readonly from: Piece;
      readonly to: Piece;
      readonly bytes: number;
      readonly root: number;
    }
  | ({ readonly kind: "allReduce" | "reduceScatter" } & Reduced)
  | ({ readonly kind: "reduce"; readonly root: number } & Reduced)
  /** `peer` is a rank of the world. */
  | { readonly kind: "send" | "recv"; readonly piece: Piece; readonly bytes: number; readonly peer: number };

interface Reduced {
  readonly from: Piece;
  readonly to: Piece;
  readonly count: number;
  readonly dtype: DType;
  readonly op: ReductionOpType;
}

export interface TransferPlan {
  /** Strided views to scratch, before the calls. */
  readonly packs: readonly Move[];
  /** Scratch that is filled with neutral elements: what a root without an input contributes. */
  readonly identities: readonly {
    readonly offset: number;
    readonly count: number;
    readonly dtype: DType;
    readonly op: ReductionOpType;
  }[];
  /** More than one: within ncclGroupStart and ncclGroupEnd. */
  readonly calls: readonly NcclCall[];
  /** Scratch to strided views, after the calls. */
  readonly unpacks: readonly Move[];
  readonly scratchBytes: number;
}

export interface Move {
  readonly view: View;
  readonly offset: number;
}

/** `members`: the operations of the whole team in team order; the member is the one at `position`. */
export function planCollective(members: readonly Collective[], position: number): TransferPlan {
  const plan = createPlan();
  const own = at(members, position);
  const { type, team, input, output, reduceOp } = own;
  const root = own.root ?? 0;
  switch (type) {
    case "Allgather": {
      const [from, to] = [required(input), required(output)];
      plan.call({ kind: "allGather", from: plan.source(from), to: plan.destination(to), bytes: bytesOf(from) });
      break;
    }
    case "Broadcast": {
      const view = input ?? required(output);
      const from = input === null ? null : plan.source(input);
      const to = output === null ? null : plan.destination(output);
      // The root may lack an output, the others have no input: NCCL takes the other side then.
      const [first, second] = [from ?? to, to ?? from];
      if (first !== null && second !== null) {
        plan.call({ kind: "broadcast", from: first, to: second, bytes: bytesOf(view), root });
      }
      break;
    }
    case "Allreduce":
    case "ReduceScatter": {
      const [from, to] = [required(input), required(output)];
      plan.call({
        kind: type === "Allreduce" ? "allReduce" : "reduceScatter",
        from: plan.source(from),
        to: plan.destination(to),
        count: elementCount(to.shape),
        dtype: to.dtype,
        op: reduceOp ?? "sum",
      });
      break;
    }
    case "Reduce": {
      const view = input ?? required(output);
      const [count, op] = [elementCount(view.shape), reduceOp ?? "sum"];
      const from = input === null ? plan.identity(count, view.dtype, op) : plan.source(input);
      const to = output === null ? from : plan.destination(output);
      plan.call({ kind: "reduce", from, to, count, dtype: view.dtype, op, root });
      break;
    }
    case "Gather": {
      if (input !== null) plan.send(input, at(team, root));
      if (output !== null) {
        const senders = members.flatMap((member, i) => (member.input === null ? [] : [at(team, i)]));
        senders.forEach((peer, part) => plan.receive(partOf(output, part), peer));
      }
      break;
    }
    case "Scatter": {
      if (input !== null) {
        const receivers = members.flatMap((member, i) => (member.output === null ? [] : [at(team, i)]));
        receivers.forEach((peer, part) => plan.send(partOf(input, part), peer));
      }
      if (output !== null) plan.receive(output, at(team, root));
      break;
    }
    case "AllToAll": {
      const [from, to] = [required(input), required(output)];
      team.forEach((peer, part) => {
        plan.send(partOf(from, part), peer);
        plan.receive(partOf(to, part), peer);
      });
      break;
    }
  }
  return plan.done();
}

export function planGroup({ ops }: PointToPointGroup): TransferPlan {
  const plan = createPlan();
  for (const { type, peer, view } of ops) {
    if (type === "send") plan.send(view, peer);
    else plan.receive(view, peer);
  }
  return plan.done();
}

interface PlanBuilder {
  readonly source: (view: View) => Piece;
  readonly destination: (view: View) => Piece;
  readonly identity: (count: number, dtype: DType, op: ReductionOpType) => Piece;
  readonly send: (view: View, peer: number) => void;
  readonly receive: (view: View, peer: number) => void;
  readonly call: (call: NcclCall) => void;
  readonly done: () => TransferPlan;
}

/** Pieces of scratch start at multiples of this, for wide accesses of packing kernels and of NCCL. */
const scratchAlignment = 256;

function createPlan(): PlanBuilder {
  const packs: Move[] = [];
  const unpacks: Move[] = [];
  const identities: TransferPlan["identities"][number][] = [];
  const calls: NcclCall[] = [];
  let scratchBytes = 0;
  const take = (bytes: number): number => {
    const offset = scratchBytes;
    scratchBytes += Math.ceil(bytes / scratchAlignment) * scratchAlignment;
    return offset;
  };
  const through = (view: View, moves: Move[]): Piece => {
    if (isContiguous(view)) return { kind: "view", view };
    const offset = take(bytesOf(view));
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
    send: (view, peer) => calls.push({ kind: "send", piece: builder.source(view), bytes: bytesOf(view), peer }),
    receive: (view, peer) => calls.push({ kind: "recv", piece: builder.destination(view), bytes: bytesOf(view), peer }),
    call: (made) => calls.push(made),
    done: () => ({ packs, identities, calls, unpacks, scratchBytes }),
  };
  return builder;
}

/** Whether the elements lie side by side in row-major order. */
function isContiguous({ shape, strides }: View): boolean {
  const dense = contiguousStrides(shape);
  return shape.every((extent, axis) => extent === 1 || strides[axis] === dense[axis]);
}

function bytesOf({ shape, dtype }: View): number {
  return elementCount(shape) * dtypes[dtype].bytes;
}

function required(view: View | null): View {
  invariant(view !== null, "the table of collectives says who reads and writes");
  return view;
}
