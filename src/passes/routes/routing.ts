/**
 * The state of insert-routes. Ops are routed in order; what is inserted stands beside the op that it is for. An op whose
 * result may not be needed as it lies waits until an op reads it, and is then routed in its own place:
 *
 *   a sum over devices                   two of them may be added before one collective (merge-sums.ts)
 *   a gather, an expand, a reshape       what is moved may be their operand (move.ts)
 */
import type { TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { Op } from "../../ir/ops/op.ts";
import type { DType } from "../../numerics/dtype.ts";
import type { FusionEdit } from "../edit/tensor-edit.ts";
import type { LoweringOptions } from "../options.ts";

export interface Routing extends FusionEdit {
  /** The ops in the place of the op that is routed. */
  ops: Op[];
  /** The number of that place. */
  position: number;
  readonly fusion: FusionData;
  readonly readers: ReadonlyMap<TensorId, readonly Op[]>;
  readonly options: LoweringOptions;
  /** By the tensors that they make. */
  readonly waiting: Map<TensorId, { readonly op: Op; readonly ops: Op[]; readonly position: number }>;
  /** What is read in place of a tensor, which lies otherwise now, or is not made. */
  readonly ends: Map<TensorId, TensorId>;
  /** What was moved, by a text of what and where to (`placeText`). */
  readonly moved: Map<string, { readonly id: TensorId; readonly position: number }>;
  /** The tensors that one op reads once, and nothing else. */
  readonly readOnce: Set<TensorId>;
  readonly outputs: ReadonlySet<TensorId>;
  /** The tensors whose sums are left to ops on them, and in which dtype their parts were made (insert-routes.ts). */
  readonly late: Map<TensorId, DType>;
  /** By the result of an op: the operand where it is computed, to be moved then (weigh-ops.ts). */
  readonly follows: Map<TensorId, number>;
  /** Routes an op at once, in the current place. */
  readonly route: (op: Op) => void;
}

/** The tensor that `reader` reads in place of `id`. The op that makes the tensor that is read in place of it reads `id`. */
export function endOf(routing: Routing, id: TensorId, reader: Pick<Op, "output"> | null = null): TensorId {
  const end = routing.ends.get(id);
  return end === undefined || end === reader?.output ? id : endOf(routing, end, reader);
}

/** As `endOf`, once the op that makes the tensor is routed. */
export function read(routing: Routing, id: TensorId, reader: Pick<Op, "output"> | null = null): TensorId {
  return madeTensor(routing, endOf(routing, id, reader), reader);
}

/** The tensor, or what `reader` reads in place of it if the op that makes it has waited until now. */
export function madeTensor(routing: Routing, id: TensorId, reader: Pick<Op, "output"> | null = null): TensorId {
  const waiting = routing.waiting.get(id);
  if (waiting === undefined) return id;
  const { ops, position } = routing;
  routing.waiting.delete(id);
  routing.ops = waiting.ops;
  routing.position = waiting.position;
  routing.route(waiting.op);
  routing.ops = ops;
  routing.position = position;
  return read(routing, id, reader);
}

/** The op with what it reads in place of its operands; the same object if these are its operands. */
export function reading<T extends Op>(op: T, idOf: (id: TensorId, operand: number) => TensorId): T {
  const inputs = op.inputs.map(idOf);
  return inputs.every((id, i) => id === op.inputs[i]) ? op : { ...op, inputs };
}

/** The ops that `add` adds, which are still to be routed. */
export function unrouted(routing: Routing, add: () => void): readonly Op[] {
  const { ops } = routing;
  const added: Op[] = [];
  routing.ops = added;
  add();
  routing.ops = ops;
  return added;
}
