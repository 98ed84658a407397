/** The page: what to compile on the left, what becomes of it on the right. */
import type { FunctionComponent, JSX, TargetedKeyboardEvent } from "preact";
import { useState } from "preact/hooks";
import { paneNames, type PaneName } from "../model/state.ts";
import { Controls } from "./controls.tsx";
import { Header } from "./header.tsx";
import { Splitter } from "./splitter.tsx";
import { useStore } from "./hooks.ts";
import { paneLabels, Pane } from "./panes/pane.tsx";
import type { PageProps } from "./props.ts";
import { SourceEditor } from "./source-editor.tsx";
import type { TourProps } from "./tour.tsx";
import { Verdict } from "./verdict.tsx";

export function App({ store, pointing }: PageProps): JSX.Element {
  const { history, results } = useStore(store);
  const { pane } = history.present;
  // It comes when it is asked for.
  const [tour, setTour] = useState<{ readonly Tour: FunctionComponent<TourProps> } | null>(null);
  return (
    <>
      <Header
        store={store}
        startTour={() => {
          void import("./tour.tsx").then(setTour);
        }}
      />
      {tour !== null && (
        <tour.Tour
          store={store}
          close={() => {
            setTour(null);
          }}
        />
      )}
      <main>
        <section class="input" aria-label="Program">
          <SourceEditor store={store} pointing={pointing} />
          <Controls store={store} />
        </section>
        <Splitter />
        <section class="output" aria-label="Results">
          <Verdict store={store} pointing={pointing} />
          <Tabs
            pane={pane}
            choose={(next) => {
              store.change({ kind: "pane", pane: next });
            }}
          />
          <div class="pane" role="tabpanel" id="pane" aria-labelledby={`tab-${pane}`} tabIndex={0}>
            {results.isStale && <p class="stale">The program does not compile now. This is what it was before.</p>}
            <Pane store={store} pointing={pointing} pane={pane} />
          </div>
        </section>
      </main>
    </>
  );
}

const moves: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1 };

function Tabs({ pane, choose }: { readonly pane: PaneName; readonly choose: (pane: PaneName) => void }): JSX.Element {
  const move = (event: TargetedKeyboardEvent<HTMLElement>): void => {
    const by = moves[event.key];
    if (by === undefined) return;
    const next = paneNames[(paneNames.indexOf(pane) + by + paneNames.length) % paneNames.length];
    if (next === undefined) return;
    choose(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label="Panes" onKeyDown={move}>
      {paneNames.map((name) => (
        <button
          type="button"
          role="tab"
          key={name}
          id={`tab-${name}`}
          aria-selected={name === pane}
          aria-controls="pane"
          tabIndex={name === pane ? 0 : -1}
          onClick={() => {
            choose(name);
          }}
        >
          {paneLabels[name]}
        </button>
      ))}
    </div>
  );
}
