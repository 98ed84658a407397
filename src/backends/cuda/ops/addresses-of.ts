/** The addresses that a device operation names, its own memory included. */
import { unreachable } from "../../../support/unreachable.ts";
import type { NcclCall } from "../nccl/plan-builder.ts";
import type { Address } from "./address.ts";
import type { DeviceOp } from "./device-op.ts";

export function addressesOf(op: DeviceOp): readonly Address[] {
  switch (op.kind) {
    case "copy":
    case "copy2d":
      return [op.to, op.from];
    case "batch":
      return op.operations.map(({ address }) => address);
    case "launch":
      return op.parameters.filter((parameter) => typeof parameter !== "number");
    case "gemm":
      return [op.a, op.b, op.c, op.bias, op.addend ?? null].filter((address) => address !== null);
    case "attention":
      return [...op.operands, op.scratch];
    case "transfer":
      return op.calls.flatMap(callAddresses);
    case "record":
    case "wait":
      return [];
    default:
      return unreachable(op);
  }
}

function callAddresses(call: NcclCall<Address>): readonly Address[] {
  return "piece" in call ? [call.piece] : [call.from, call.to];
}
