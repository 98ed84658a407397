/** What the user points at, and what belongs to it in every pane. */
import { type Linked, linkedTo, type Pointed } from "../model/linking.ts";
import type { Store } from "./store.ts";

export interface Pointing {
  readonly point: (pointed: Pointed | null) => void;
  readonly pointed: () => Pointed | null;
  readonly linked: () => Linked;
  readonly subscribe: (listener: () => void) => () => void;
}

export function createPointing(store: Store): Pointing {
  const listeners = new Set<() => void>();
  let pointed: Pointed | null = null;
  let linked = linkedTo(null, store.results());
  return {
    point: (next) => {
      if (JSON.stringify(next) === JSON.stringify(pointed)) return;
      pointed = next;
      linked = linkedTo(next, store.results());
      for (const listener of listeners) listener();
    },
    pointed: () => pointed,
    linked: () => linked,
    subscribe: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
