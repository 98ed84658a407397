/** The state in the address and in the browser's local storage. */
import { examples, firstText } from "virtual:examples";
import { gpuSizes, stateOf } from "../model/inputs.ts";
import { decodeState, encodeState } from "../model/share.ts";
import type { State } from "../model/state.ts";
import type { Store } from "./store.ts";

const key = "braid-playground-state";
/** Storage has a few megabytes for all pages of a host. */
const mostKept = 2_000_000;

/** From a link, else from the last visit, else the first example. */
export function firstState(): State {
  return decodeState(location.hash.slice(1)) ?? decodeState(localStorage.getItem(key) ?? "") ?? usualState();
}

/** What a first visit shows. */
export function usualState(): State {
  const [example] = examples;
  const name = example?.name ?? "";
  return stateOf({ kind: "program", name: `examples/${name}.ts`, text: firstText }, gpuSizes[name]);
}

export function keepState(store: Store): void {
  let timer = 0;
  let kept: State | null = null;
  store.subscribe(() => {
    const { present } = store.history();
    if (present === kept) return;
    kept = present;
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      const text = encodeState(present);
      if (text.length <= mostKept) localStorage.setItem(key, text);
      // A link that was opened no longer says what the page shows.
      if (location.hash !== "") history.replaceState(null, "", location.pathname);
    }, 500);
  });
}

export function shareLink(state: State): string {
  return `${location.href.replace(/#.*$/u, "")}#${encodeState(state)}`;
}
