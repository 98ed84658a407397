/**
 * Short texts of ops, tensors and axes for the diagnostics of passes, such as `T2 = matmul(T0, T1)` and `axis 0 of T2`.
 */
import type { Place } from "../diagnostics/diagnostic.ts";
import { loopAxesOf } from "../ir/parts.ts";
import type { IterDomain, Tensor, TensorId } from "../ir/domain.ts";
import { type Op, outputsOf } from "../ir/ops/op.ts";

/** `T2 = matmul(T0, T1)`. */
export function opText(op: Op): string {
  return `${tensorListText(outputsOf(op))} = ${nameOfOp(op)}(${op.inputs.map((input) => `T${input}`).join(", ")})`;
}

/** `sum`, `cumsum`, `matmul`. */
function nameOfOp(op: Op): string {
  if (op.kind === "Scan") return `cum${op.op.replace("am", "m")}`;
  return "op" in op ? op.op : op.kind.toLowerCase();
}

/** The op as the place of a diagnostic. */
export function opPlace(op: Op): Place {
  return { kind: "statement", text: opText(op) };
}

/** `T0, T1`. */
export function tensorListText(ids: readonly TensorId[]): string {
  return ids.map((id) => `T${id}`).join(", ");
}

/** `axis 1 of T0 (DIDx)`, counted in the loop domain as by `tv.axis(i)`. A split axis is named by its outermost part. */
export function axisText({ id, domain }: Tensor, axis: IterDomain): string {
  const { loop } = domain;
  const own = loop.findIndex((candidate) => candidate.id === axis.id);
  const [first] = own < 0 ? loopAxesOf(domain, axis) : [];
  const position = own < 0 ? loop.findIndex((candidate) => candidate.id === first?.id) : own;
  const parallelType = first?.type ?? axis.parallelType;
  const type = parallelType === "Serial" ? "" : ` (${parallelType})`;
  return `axis ${position} of T${id}${type}`;
}
