/** Memory operations as the driver takes them: the layout of CUstreamBatchMemOpParams in cuda.h. */
import {
  CU_STREAM_BATCH_MEM_OP_SIZE,
  CU_STREAM_MEM_OP_WAIT_VALUE_32,
  CU_STREAM_MEM_OP_WRITE_VALUE_32,
  CU_STREAM_WAIT_VALUE_EQ,
  CU_STREAM_WRITE_VALUE_DEFAULT,
} from "../bindings/driver-api.ts";
import type { HostBlocks } from "../memory/host-blocks.ts";
import type { MemoryOperation } from "../ops/memory-operations.ts";

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
