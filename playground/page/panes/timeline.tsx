/** The predicted run on the report page's timeline, and why time is exposed. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { noChange } from "../../../src/explain/changes.ts";
import type { OtherOptions, PredictedPart } from "../../compiler/parts.ts";
import type { SliceRef, TimelineData } from "../../../src/report/data/timeline-data.ts";
import type { TimelineView } from "../../../src/report/page/mount-timeline.ts";
import { percent, time } from "../../model/units.ts";
import { useLinked, useStore } from "../hooks.ts";
import type { PageProps } from "../props.ts";
import { Empty } from "./empty.tsx";

export function TimelinePane(props: PageProps): JSX.Element {
  const { results } = useStore(props.store);
  const { predicted } = results;
  if (predicted === null) {
    return <Empty results={results} />;
  }
  return <Run {...props} predicted={predicted} />;
}

function Run({ store, pointing, predicted }: PageProps & { readonly predicted: PredictedPart }): JSX.Element {
  const linked = useLinked(pointing);
  const holder = useRef<HTMLDivElement>(null);
  const legendHolder = useRef<HTMLDivElement>(null);
  const timeline = useRef<TimelineView | null>(null);
  const { timeline: data } = predicted;
  const shown = useRef(data);
  shown.current = data;

  useEffect(() => {
    let isEnded = false;
    const point = (ref: SliceRef | null): void => {
      const place = ref === null ? null : placeOf(shown.current, ref);
      pointing.point(place === null ? null : { kind: "command", ...place });
    };
    // Drawn by D3, which the page loads when it is first shown.
    void import("./drawing.ts").then(({ legend, mountTimeline }) => {
      if (isEnded || holder.current === null) return;
      timeline.current = mountTimeline(holder.current, shown.current, { onHover: point });
      legendHolder.current?.append(legend([shown.current]));
    });
    return () => {
      isEnded = true;
      timeline.current?.destroy();
      timeline.current = null;
    };
  }, [pointing]);
  useEffect(() => {
    timeline.current?.setData(data);
  }, [data]);
  useEffect(() => {
    const pointed = pointing.pointed();
    if (pointed === null || pointed.kind === "command") timeline.current?.highlight(null, false);
    else timeline.current?.highlight({ kind: "commands", view: 0, commands: linkedCommands(store, linked) }, false);
  }, [linked, pointing, store]);

  return (
    <>
      <div class="toolbar" ref={legendHolder} />
      <div class="timeline" ref={holder} />
      <p class="hint keys">
        W S zoom · A D move · , . from slice to slice · 0 all · point at a slice for what it is and what it waited for
      </p>
      <h2>
        Why {time(predicted.exposed)} of {time(predicted.milliseconds)} are exposed
      </h2>
      <p class="hint keys">
        Exposed is the run's time minus that of its kernels alone: time without a kernel, and what transfers slow
        kernels down.
      </p>
      <table class="causes">
        <tbody>
          {predicted.causes
            .filter(({ milliseconds }) => Math.abs(milliseconds) >= 0.001 * predicted.milliseconds)
            .map(({ cause, label, sentence, milliseconds }) => (
              <tr key={cause}>
                <th scope="row">
                  <button
                    type="button"
                    onClick={() => {
                      timeline.current?.highlight({ kind: "cause", cause }, true);
                    }}
                  >
                    {label}
                  </button>
                </th>
                <td class="number">{time(milliseconds)}</td>
                <td class="number">{percent(milliseconds / predicted.milliseconds)}</td>
                <td>{sentence}</td>
              </tr>
            ))}
        </tbody>
      </table>
      <WhatToChange store={store} predicted={predicted} />
      {predicted.assumptions.map((text) => (
        <p class="hint keys" key={text}>
          Assumed: {text}
        </p>
      ))}
    </>
  );
}

interface ChangeProps {
  readonly store: PageProps["store"];
  readonly predicted: PredictedPart;
}

/** Each option is compiled, which takes as long as the program itself: larger ones are left to the command line. */
const mostCommands = 2000;

function WhatToChange({ store, predicted }: ChangeProps): JSX.Element | null {
  const { history, results } = useStore(store);
  const [found, setFound] = useState<readonly OtherOptions[] | null>(null);
  const isLarge = (results.verdict?.size.commands ?? 0) > mostCommands;
  const isEdited = Object.keys(history.present.edits).length > 0;
  useEffect(() => {
    setFound(null);
    return isLarge || isEdited ? undefined : store.otherOptions(setFound);
  }, [store, predicted, isLarge, isEdited]);
  if (isEdited) return null;
  return (
    <>
      <h2>What to change</h2>
      {isLarge ? (
        <p class="hint keys">
          Copy command, with --print all behind it, predicts other options of a program of this size.
        </p>
      ) : found === null ? (
        <p class="hint keys">Predicting other options …</p>
      ) : found.length === 0 ? (
        <p class="hint keys">
          {noChange.charAt(0).toUpperCase()}
          {noChange.slice(1)}.
        </p>
      ) : (
        <table class="causes changes">
          <tbody>
            {found.map(({ change, options, milliseconds, gain }) => (
              <tr key={change}>
                <th scope="row">
                  <button
                    type="button"
                    title="Set these options"
                    onClick={() => {
                      for (const [name, text] of Object.entries(options)) store.change({ kind: "option", name, text });
                    }}
                  >
                    <code>{change}</code>
                  </button>
                </th>
                <td class="number">{time(milliseconds)}</td>
                <td>{gain}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </>
  );
}

interface Place {
  readonly rank: number;
  readonly command: number;
}

function placeOf({ runs }: TimelineData, { run, slice }: SliceRef): Place | null {
  const shown = runs[run];
  const track = shown?.tracks.find(({ first, count }) => slice >= first && slice < first + count);
  const command = shown?.slices.command[slice];
  return track === undefined || command === undefined ? null : { rank: track.rank, command };
}

function linkedCommands(store: PageProps["store"], { hasCommand }: ReturnType<typeof useLinked>): readonly Place[] {
  const { verdict } = store.results();
  return (verdict?.commands ?? []).flatMap(({ rows }, rank) =>
    rows.flatMap((_, command) => (hasCommand(rank, command) ? [{ rank, command }] : [])),
  );
}
