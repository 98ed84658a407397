/** Chooses the rank that a pane shows. Ranks that run one program are together. */
import type { JSX } from "preact";
import { useStore } from "../hooks.ts";
import type { Store } from "../store.ts";

export function RankPicker({ store }: { readonly store: Store }): JSX.Element | null {
  const { history, results } = useStore(store);
  const { lowered } = results;
  if (lowered === null) return null;
  const rank = Math.min(history.present.rank, lowered.devices - 1);
  return (
    <label class="picker">
      rank
      <select
        value={String(rank)}
        onChange={({ currentTarget }) => {
          store.change({ kind: "rank", rank: Number(currentTarget.value) });
        }}
      >
        {Array.from({ length: lowered.devices }, (_, each) => (
          <option key={each} value={String(each)}>
            {each}
          </option>
        ))}
      </select>
    </label>
  );
}

/** The shown rank, of those that there are. */
export function shownRank(store: Store): number {
  const { lowered } = store.results();
  const { rank } = store.history().present;
  return lowered === null ? rank : Math.min(rank, lowered.devices - 1);
}
