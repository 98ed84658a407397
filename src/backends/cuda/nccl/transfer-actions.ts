/** The NCCL calls of a transfer as one action: a group on one stream. */
import type { ReductionOpType } from "../../../ir/ops/op.ts";
import { fail } from "../../../diagnostics/diagnostic.ts";
import { type DType, dtypes } from "../../../numerics/dtype.ts";
import { unreachable } from "../../../support/unreachable.ts";
import type { NcclCommunicator, Communicators } from "./communicators.ts";
import type { Address } from "../ops/address.ts";
import type { NcclCall } from "./plan-builder.ts";

export interface TransferTarget {
  readonly communicator: NcclCommunicator;
  readonly communicators: Communicators;
  readonly stream: number;
  readonly addressOf: (address: Address) => number;
  /** Called when NCCL continues a call in the background. */
  readonly inProgress: (communicator: NcclCommunicator) => void;
}

const rawBytes = 1;

/** ncclRedOp_t. */
const reductions: { readonly [Op in ReductionOpType]: number } = { sum: 0, prod: 1, amax: 2, amin: 3 };

/**
 * After a call of `inProgress`, the next action waits until NCCL has enqueued its work. A run of the action allocates
 * nothing.
 */
export function transferAction(calls: readonly NcclCall<Address>[], target: TransferTarget): () => void {
  const { communicator, communicators, inProgress } = target;
  const actions = calls.map((call) => callAction(call, target));
  const { functions, check } = communicators;
  return () => {
    check(functions.ncclGroupStart(), "ncclGroupStart", communicator);
    for (const each of actions) each();
    if (check(functions.ncclGroupEnd(), "ncclGroupEnd", communicator)) inProgress(communicator);
  };
}

function callAction(call: NcclCall<Address>, target: TransferTarget): () => void {
  const { communicator, communicators, stream, addressOf: place } = target;
  const { functions, check } = communicators;
  const { handle, ranks } = communicator;
  const checked = (name: string, status: number): void => {
    check(status, name, communicator);
  };
  switch (call.kind) {
    case "allGather": {
      const [from, to] = [place(call.from), place(call.to)];
      return () => checked("ncclAllGather", functions.ncclAllGather(from, to, call.bytes, rawBytes, handle, stream));
    }
    case "broadcast": {
      const [from, to] = [place(call.from), place(call.to)];
      return () =>
        checked("ncclBroadcast", functions.ncclBroadcast(from, to, call.bytes, rawBytes, call.root, handle, stream));
    }
    case "allReduce": {
      const [from, to, type, op] = [place(call.from), place(call.to), dtypes[call.dtype].cuda.nccl, reductionOf(call)];
      return () => checked("ncclAllReduce", functions.ncclAllReduce(from, to, call.count, type, op, handle, stream));
    }
    case "reduceScatter": {
      const [from, to, type, op] = [place(call.from), place(call.to), dtypes[call.dtype].cuda.nccl, reductionOf(call)];
      return () =>
        checked("ncclReduceScatter", functions.ncclReduceScatter(from, to, call.count, type, op, handle, stream));
    }
    case "reduce": {
      const [from, to, type, op] = [place(call.from), place(call.to), dtypes[call.dtype].cuda.nccl, reductionOf(call)];
      return () =>
        checked("ncclReduce", functions.ncclReduce(from, to, call.count, type, op, call.root, handle, stream));
    }
    case "send": {
      const [from, peer] = [place(call.piece), ranks.indexOf(call.peer)];
      return () => checked("ncclSend", functions.ncclSend(from, call.bytes, rawBytes, peer, handle, stream));
    }
    case "recv": {
      const [to, peer] = [place(call.piece), ranks.indexOf(call.peer)];
      return () => checked("ncclRecv", functions.ncclRecv(to, call.bytes, rawBytes, peer, handle, stream));
    }
    default:
      return unreachable(call);
  }
}

/** NCCL has no bool, and sums of uint8 are not 0 or 1. */
function reductionOf({ op, dtype }: { readonly op: ReductionOpType; readonly dtype: DType }): number {
  if (dtype === "bool" && (op === "sum" || op === "prod")) {
    fail("gpu-unsupported", "NCCL cannot add or multiply bools", {
      place: { kind: "option", text: "--on cuda" },
      found: `a reduction ${op} of bool over ranks`,
      expected: "amax or amin, or another dtype",
      help: 'convert first, for example cast(tensor, "int")',
    });
  }
  return reductions[op];
}
