/** The tour's panel, over the page. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { hostOf } from "../model/linking.ts";
import { tour } from "../model/tour.ts";
import { Icon } from "./icons.tsx";
import { usualState } from "./persistence.ts";
import type { Store } from "./store.ts";

export interface TourProps {
  readonly store: Store;
  readonly close: () => void;
}

export function Tour({ store, close }: TourProps): JSX.Element | null {
  const [position, setPosition] = useState(0);
  const panel = useRef<HTMLElement>(null);
  useEffect(() => {
    store.change({ kind: "restore", state: { ...usualState(), pane: "fusion" } });
    panel.current?.focus();
  }, [store]);
  const step = tour[position];
  if (step === undefined) return null;
  const go = (to: number): void => {
    const next = tour[to];
    if (next === undefined) return close();
    const host = hostOf(store.results(), 0);
    store.change({ kind: "rank", rank: 0 });
    store.change({ kind: "pane", pane: next.pane });
    if (to > position && host !== null) for (const change of next.changes?.(host) ?? []) store.change(change);
    if (to < position) store.change({ kind: "unedit" });
    setPosition(to);
  };
  return (
    <section
      class="tour"
      aria-label="Tour"
      tabIndex={-1}
      ref={panel}
      onKeyDown={({ key }) => {
        if (key === "Escape") close();
      }}
    >
      <button type="button" class="icon" aria-label="End the tour" onClick={close}>
        <Icon name="cross" />
      </button>
      <p class="hint">
        Step {position + 1} of {tour.length}
      </p>
      <div aria-live="polite">
        <h3>{step.title}</h3>
        <p>{step.text}</p>
      </div>
      <div class="tour-bar">
        <button
          type="button"
          disabled={position === 0}
          onClick={() => {
            go(position - 1);
          }}
        >
          Back
        </button>
        <button
          type="button"
          class="primary"
          onClick={() => {
            go(position + 1);
          }}
        >
          {position === tour.length - 1 ? "Done" : "Next"}
        </button>
      </div>
    </section>
  );
}
