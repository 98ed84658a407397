/** What all ranks of a collective of PyTorch must agree on, one row each by the names of its flight recorder. */
import type { TorchEntry } from "./torch-record.ts";
import { elementCount } from "../../numerics/tensor/host-tensor.ts";

interface CollectiveRow {
  /** The tensors that have as many elements on every rank. */
  readonly alike: readonly ("inputs" | "outputs")[];
  /** Which side has the elements of all ranks: as many as ranks times the other side. */
  readonly whole?: "inputs" | "outputs";
  /** Whether the elements of all inputs are those of all outputs, divided among ranks in any way. */
  readonly isExchange?: true;
  /** Whether it completes on one rank only after all have started it. */
  readonly needsAll: boolean;
}

const both: CollectiveRow = { alike: ["inputs", "outputs"], needsAll: true };
const gathers: CollectiveRow = { alike: ["inputs"], whole: "outputs", needsAll: true };
const scatters: CollectiveRow = { alike: ["outputs"], whole: "inputs", needsAll: true };
const exchanges: CollectiveRow = { alike: [], isExchange: true, needsAll: true };
const fromRoot: CollectiveRow = { alike: ["outputs"], needsAll: false };
const toRoot: CollectiveRow = { alike: ["inputs"], needsAll: false };
const unknown: CollectiveRow = { alike: [], needsAll: false };

/** Ops that a space separates have one row. */
const opsOfRows: readonly (readonly [ops: string, row: CollectiveRow])[] = [
  ["all_reduce allreduce_coalesced all_reduce_barrier barrier", both],
  ["all_gather _all_gather_base all_gather_single all_gather_into_tensor_coalesced", gathers],
  ["reduce_scatter _reduce_scatter_base reduce_scatter_single reduce_scatter_tensor_coalesced", scatters],
  ["all_to_all all_to_all_single all_to_all_v_single", exchanges],
  ["broadcast _broadcast_oop scatter", fromRoot],
  ["reduce _reduce_oop gather", toRoot],
];

const rows = new Map(opsOfRows.flatMap(([ops, row]) => ops.split(" ").map((op) => [op, row] as const)));

/** Of an op that is not in the table only its name is compared. */
export function rowOfOp({ op }: TorchEntry): CollectiveRow {
  return rows.get(op) ?? unknown;
}

export function needsAll(entry: TorchEntry): boolean {
  return rowOfOp(entry).needsAll;
}

export function recordedElements(entry: TorchEntry, side: "inputs" | "outputs"): number {
  return entry[side].reduce((sum, { sizes }) => sum + elementCount(sizes), 0);
}
