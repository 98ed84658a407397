/**
 * Binds device operations: turns each into an action, a closure over the numbers of addresses, streams and events,
 * whose arguments are laid out when the list is prepared. A run calls the actions in order and allocates nothing.
 */
import { dispatch, type RuleTable, at, invariant, unreachable } from "../../../support/invariant.ts";
import type { PlannedAttention } from "../attention/attentions.ts";
import {
  CU_MEMORYTYPE_DEVICE,
  CU_STREAM_BATCH_MEM_OP_SIZE,
  CU_STREAM_MEM_OP_WAIT_VALUE_32,
  CU_STREAM_MEM_OP_WRITE_VALUE_32,
  CU_STREAM_WAIT_VALUE_EQ,
  CU_STREAM_WRITE_VALUE_DEFAULT,
  CUDA_MEMCPY2D_SIZE,
} from "../bindings/driver-api.ts";
import type { HostBlocks } from "../memory/host-blocks.ts";
import type { NcclCommunicator, Communicators } from "../nccl/communicators.ts";
import type { DeviceAttention, DeviceOp, DeviceOps, KernelLaunch } from "../ops/device-op.ts";
import type { MemoryOperation } from "../ops/memory-operations.ts";
import type { Resources } from "../resources.ts";
import type { Session } from "../session.ts";
import type { AddressOf } from "./spaces.ts";
import type { ReductionOpType } from "../../../ir/ops/op.ts";
import { fail } from "../../../diagnostics/diagnostic.ts";
import { type DType, dtypes } from "../../../numerics/dtype.ts";
import type { Address } from "../ops/address.ts";
import type { NcclCall } from "../nccl/plan-builder.ts";

/** A driver or library call with its arguments bound. */
export type Action = () => void;

export interface Binding {
  readonly session: Session;
  readonly list: Pick<DeviceOps, "kernels" | "gemms" | "attentions">;
  readonly addressOf: AddressOf;
  /** Argument blocks that live as long as the prepared list. */
  readonly blocks: HostBlocks;
  /** Released with the prepared list. */
  readonly resources: Resources;
  /** By number. */
  readonly streams: readonly number[];
  readonly events: readonly number[];
  readonly attentionOf: (attention: DeviceAttention, stream: number) => PlannedAttention;
  readonly communicators: ReadonlyMap<string, NcclCommunicator>;
  /** Called when NCCL continues a call in the background. The next action must wait for it. */
  readonly inProgress: (communicator: NcclCommunicator) => void;
}

const table: RuleTable<DeviceOp, Action, [Binding]> = {
  copy: ({ stream, bytes, ...op }, binding) => {
    const [to, from, on] = [binding.addressOf(op.to), binding.addressOf(op.from), at(binding.streams, stream)];
    return checked(binding, "cuMemcpyDtoDAsync", (raw) => () => raw.cuMemcpyDtoDAsync_v2(to, from, bytes, on));
  },
  copy2d: ({ stream, to, toPitch, from, fromPitch, width, height }, binding) => {
    const [source, destination] = [binding.addressOf(from), binding.addressOf(to)];
    const pitches = { sourcePitch: fromPitch, destinationPitch: toPitch };
    const copy = encodePlaneCopy({ source, destination, ...pitches, width, height }, binding.blocks);
    const on = at(binding.streams, stream);
    return checked(binding, "cuMemcpy2DAsync", (raw) => () => raw.cuMemcpy2DAsync_v2(copy, on));
  },
  batch: ({ stream, operations }, binding) => {
    const bound = operations.map((each) => ({ ...each, address: binding.addressOf(each.address) }));
    const batch = encodeBatch(bound, binding.blocks);
    const [count, on] = [bound.length, at(binding.streams, stream)];
    return checked(binding, "cuStreamBatchMemOp", (raw) => () => raw.cuStreamBatchMemOp_v2(on, count, batch, 0));
  },
  launch: ({ stream, ...launch }, binding) => {
    const values = launch.parameters.map((each) => (typeof each === "number" ? each : binding.addressOf(each)));
    return launchAction(launch, values, stream, binding);
  },
  gemm: ({ stream, gemm, ...op }, binding) => {
    const { session, streams, addressOf } = binding;
    const { layout, margin, fallback } = at(binding.list.gemms, gemm);
    const bias = op.bias === null ? 0 : addressOf(op.bias);
    const addend = addressOf(op.addend ?? op.c);
    const scales = (op.scales ?? []).map(addressOf);
    const addresses = { a: addressOf(op.a), b: addressOf(op.b), bias, addend, scales, c: addressOf(op.c) };
    const workspace = addressOf({ space: "workspace", stream });
    const call = session.gemms().prepare(layout, addresses, { stream: at(streams, stream), workspace, margin });
    if (call !== null) return call;
    const operands = [op.a, op.b, op.bias, op.addend ?? null, ...(op.scales ?? []), op.c].filter(
      (address) => address !== null,
    );
    return launchAction(fallback, operands.map(addressOf), stream, binding);
  },
  attention: ({ stream, attention, operands, scratch }, { list, addressOf, attentionOf, resources }) =>
    attentionOf(at(list.attentions, attention), stream).bind(
      {
        operands: operands.map(addressOf),
        scratch: addressOf(scratch),
        workspace: addressOf({ space: "workspace", stream }),
      },
      resources,
    ),
  record: ({ event, stream }, binding) => {
    const [handle, on] = [at(binding.events, event), at(binding.streams, stream)];
    return checked(binding, "cuEventRecord", (raw) => () => raw.cuEventRecord(handle, on));
  },
  wait: ({ event, stream }, binding) => {
    const [handle, on] = [at(binding.events, event), at(binding.streams, stream)];
    return checked(binding, "cuStreamWaitEvent", (raw) => () => raw.cuStreamWaitEvent(on, handle, 0));
  },
  transfer: ({ communicator: name, stream, calls }, { session, communicators, streams, addressOf, inProgress }) => {
    const communicator = communicators.get(name);
    invariant(communicator !== undefined, "the communicator of a transfer is open", { name });
    return transferAction(calls, {
      communicator,
      communicators: session.communicators(),
      stream: at(streams, stream),
      addressOf,
      inProgress,
    });
  },
};

/** Compiles and loads what the operation needs. Throws `gpu-call-failed`, `backend-unavailable`, `gpu-unsupported`. */
export function bindOp(op: DeviceOp, binding: Binding): Action {
  return dispatch<DeviceOp, Action, [Binding]>(table, op, binding);
}

function launchAction(
  { kernel, ...shape }: Omit<KernelLaunch, "parameters">,
  values: readonly number[],
  stream: number,
  { session, list, streams, blocks }: Binding,
): Action {
  return session.modules.prepareLaunch(
    { text: at(list.kernels, kernel), ...shape },
    values,
    at(streams, stream),
    blocks,
  );
}

type Raw = Session["gpu"]["raw"];

/** `make` binds the call's arguments once; the action throws `gpu-call-failed`. */
function checked({ session }: Binding, name: string, make: (raw: Raw) => () => number): Action {
  const { gpu } = session;
  const call = make(gpu.raw);
  return () => {
    const status = call();
    if (status !== 0) gpu.check(status, name);
  };
}

// Memory operations as the driver takes them: the layout of CUstreamBatchMemOpParams in cuda.h.

type BoundOperation = MemoryOperation<number>;

/** The address of the batch, for cuStreamBatchMemOp. */
export function encodeBatch(operations: readonly BoundOperation[], blocks: HostBlocks): number {
  const { address, view } = blocks.take(operations.length * CU_STREAM_BATCH_MEM_OP_SIZE);
  operations.forEach((operation, i) => writeOperation(view, i * CU_STREAM_BATCH_MEM_OP_SIZE, operation));
  return address;
}

/** Writes the bytes of one operation: type at 0, address at 8, value at 16, flags at 24. */
export function writeOperation(view: DataView, offset: number, operation: BoundOperation): void {
  const waits = operation.kind === "wait";
  view.setUint32(offset, waits ? CU_STREAM_MEM_OP_WAIT_VALUE_32 : CU_STREAM_MEM_OP_WRITE_VALUE_32, true);
  view.setBigUint64(offset + 8, BigInt(operation.address), true);
  view.setUint32(offset + 16, operation.value, true);
  view.setUint32(offset + 24, waits ? CU_STREAM_WAIT_VALUE_EQ : CU_STREAM_WRITE_VALUE_DEFAULT, true);
}

// A pitched copy as the driver takes it: the layout of CUDA_MEMCPY2D in cuda.h.

/** The bytes of a CUDA_MEMCPY2D between device addresses, as cuda.h lays it out. */
interface PlaneCopy {
  readonly source: number;
  readonly sourcePitch: number;
  readonly destination: number;
  readonly destinationPitch: number;
  /** In bytes. */
  readonly width: number;
  readonly height: number;
}

/** The address of the struct, for cuMemcpy2DAsync. */
function encodePlaneCopy(copy: PlaneCopy, blocks: HostBlocks): number {
  const { address, view } = blocks.take(CUDA_MEMCPY2D_SIZE);
  writePlaneCopy(view, copy);
  return address;
}

/**
 * srcMemoryType at 16, srcDevice at 32, srcPitch at 48; dst the same from 56 on; WidthInBytes at 112, Height at 120.
 */
export function writePlaneCopy(view: DataView, copy: PlaneCopy): void {
  const side = (start: number, address: number, pitch: number): void => {
    view.setUint32(start + 16, CU_MEMORYTYPE_DEVICE, true);
    view.setBigUint64(start + 32, BigInt(address), true);
    view.setBigUint64(start + 48, BigInt(pitch), true);
  };
  side(0, copy.source, copy.sourcePitch);
  side(56, copy.destination, copy.destinationPitch);
  view.setBigUint64(112, BigInt(copy.width), true);
  view.setBigUint64(120, BigInt(copy.height), true);
}

/* The NCCL calls of a transfer as one action: a group on one stream. */

interface TransferTarget {
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
function transferAction(calls: readonly NcclCall<Address>[], target: TransferTarget): () => void {
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
