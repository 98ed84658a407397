/** What components of the page are given. */
import type { Pointing } from "./pointing.ts";
import type { Store } from "./store.ts";

export interface PageProps {
  readonly store: Store;
  readonly pointing: Pointing;
}
