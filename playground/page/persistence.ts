/** The state in the address and in the browser's local storage. */
import { examples, firstText } from "virtual:examples";
import { gpuSizes, stateOf } from "../model/inputs.ts";
import type { State } from "../model/state.ts";
import { openExample } from "./open-file.ts";
import type { Store } from "./store.ts";

const key = "braid-playground-state";
/** Storage has a few megabytes for all pages of a host. */
const mostKept = 2_000_000;

/** It compresses states, which a first visit does not need. */
const sharing = () => import("../model/share.ts");

/** From a link, else from the last visit, else the first example. */
export async function firstState(): Promise<State> {
  return (await stateIn(location.hash.slice(1))) ?? (await stateIn(localStorage.getItem(key) ?? "")) ?? usualState();
}

async function stateIn(text: string): Promise<State | null> {
  if (text === "") return null;
  const { decodeState } = await sharing();
  return decodeState(text);
}

/** `hash`: an example's name, or a state. What is neither opens nothing. */
export async function openLink(hash: string, store: Store): Promise<void> {
  const text = hash.slice(1);
  const example = new URLSearchParams(text).get("example");
  if (example !== null) return openExample(example, store);
  const state = await stateIn(text);
  if (state !== null) store.change({ kind: "restore", state });
}

/** What a first visit shows. */
export function usualState(): State {
  const [example] = examples;
  const name = example?.name ?? "";
  return stateOf({ kind: "program", name: `examples/${name}.ts`, text: firstText }, gpuSizes[name]);
}

export function keepState(store: Store): void {
  let timer = 0;
  let kept = location.hash === "" ? store.history().present : null;
  store.subscribe(() => {
    const { present } = store.history();
    if (present === kept) return;
    kept = present;
    clearTimeout(timer);
    timer = window.setTimeout(() => void keep(present), 500);
  });
}

async function keep(state: State): Promise<void> {
  const { encodeState } = await sharing();
  const text = encodeState(state);
  if (text.length <= mostKept) localStorage.setItem(key, text);
  // A link that was opened no longer says what the page shows.
  if (location.hash !== "") history.replaceState(null, "", location.pathname);
}

export async function shareLink(state: State): Promise<string> {
  const { encodeState } = await sharing();
  return `${location.href.replace(/#.*$/u, "")}#${encodeState(state)}`;
}
