/**
 * Which tensors are bound at a point of a program, kept while statements are walked in order. A branch may or may not run, so what either
 * side leaves bound counts afterwards. Sides are tried by taking changes back, not by copies of the set: a program of many branches
 * takes time in proportion to its statements.
 */
import type { TensorId } from "../../ir/domain.ts";

export interface BoundTensors {
  readonly has: (tensor: TensorId) => boolean;
  readonly add: (tensor: TensorId) => void;
  readonly delete: (tensor: TensorId) => void;
  /** Runs both sides from the same state; afterwards bound is what either of them leaves bound. */
  readonly either: (then: () => void, otherwise: () => void) => void;
}

/** The state in which the tensors `initial` are bound. */
export function createBoundTensors(initial: Iterable<TensorId>): BoundTensors {
  const bound = new Set(initial);
  /** What the side under way has changed so far, with the state before it. */
  let changes = new Map<TensorId, boolean>();
  const set = (tensor: TensorId, now: boolean): void => {
    const before = bound.has(tensor);
    if (before === now) return;
    if (!changes.has(tensor)) changes.set(tensor, before);
    if (now) bound.add(tensor);
    else bound.delete(tensor);
  };
  /** Runs a side; what it leaves bound of what it changed. Its changes are taken back. */
  const attempt = (side: () => void): ReadonlyMap<TensorId, boolean> => {
    const outer = changes;
    changes = new Map();
    side();
    const left = new Map([...changes.keys()].map((tensor) => [tensor, bound.has(tensor)]));
    for (const [tensor, before] of changes) {
      if (before) bound.add(tensor);
      else bound.delete(tensor);
    }
    changes = outer;
    return left;
  };
  return {
    has: (tensor) => bound.has(tensor),
    add: (tensor) => {
      set(tensor, true);
    },
    delete: (tensor) => {
      set(tensor, false);
    },
    either: (then, otherwise) => {
      const afterThen = attempt(then);
      const afterElse = attempt(otherwise);
      for (const tensor of new Set([...afterThen.keys(), ...afterElse.keys()])) {
        const before = bound.has(tensor);
        set(tensor, (afterThen.get(tensor) ?? before) || (afterElse.get(tensor) ?? before));
      }
    },
  };
}
