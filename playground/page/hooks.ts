/** Hooks by which components follow the store. */
import { useEffect, useState } from "preact/hooks";
import type { History } from "../model/state.ts";
import type { Linked } from "../model/linking.ts";
import type { Pointing } from "./pointing.ts";
import type { Results, Store } from "./store.ts";

function useVersion(subscribe: (listener: () => void) => () => void): void {
  const [, setVersion] = useState(0);
  useEffect(
    () =>
      subscribe(() => {
        setVersion((version) => version + 1);
      }),
    [subscribe],
  );
}

export function useStore(store: Store): { readonly history: History; readonly results: Results } {
  useVersion(store.subscribe);
  return { history: store.history(), results: store.results() };
}

export function useLinked(pointing: Pointing): Linked {
  useVersion(pointing.subscribe);
  return pointing.linked();
}
