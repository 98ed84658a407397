/** The line above the panes: verified or not, predicted time, and how long the page took. */
import type { JSX } from "preact";
import type { PredictedPart } from "../compiler/parts.ts";
import { editedRankOf, headlineOf, placeOf } from "../model/marks.ts";
import type { PaneName } from "../model/state.ts";
import { bytes, percent, time } from "../model/units.ts";
import type { PageProps } from "./props.ts";
import { Icon } from "./icons.tsx";
import { useStore } from "./hooks.ts";
import type { Results } from "./store.ts";

/** Less than this part of communication under kernels is a program that does not overlap. */
const littleHidden = 0.1;

export function Verdict({ store, pointing }: PageProps): JSX.Element {
  const { results } = useStore(store);
  const { predicted, isBusy, milliseconds } = results;
  const { tone, title, detail, shows, scale = "" } = verdictOf(results);
  return (
    <div class={`verdict ${tone}`}>
      <div class="headline" role="status" aria-live="polite">
        <span class="badge">
          <Icon name={tone === "ok" ? "check" : "cross"} /> {title}
        </span>
        {shows === undefined ? (
          <span class="detail" title={scale}>
            {detail}
          </span>
        ) : (
          <button
            type="button"
            class="detail"
            title={`${detail}${scale === "" ? "" : ` (${scale})`}`}
            onClick={() => {
              if (typeof shows === "number") pointing.point({ kind: "message", line: shows });
              else store.change({ kind: "pane", pane: shows });
            }}
          >
            {detail}
          </button>
        )}
      </div>
      {predicted !== null && (
        <dl class="figures">
          <Figure
            name="predicted"
            value={time(predicted.milliseconds)}
            help={`predicted time of one run on ${predicted.machine}`}
          />
          {predicted.serial !== null && (
            <Figure
              name="speedup"
              value={`${(predicted.serial / predicted.milliseconds).toFixed(2)}×`}
              help={`how much faster than the same program without chunks (communication, then computation), which takes ${time(predicted.serial)}`}
              isBad={slowdownOf(predicted) !== null}
            />
          )}
          {predicted.hidden !== null && (
            <Figure
              name="hidden"
              value={percent(predicted.hidden)}
              help="communication that runs under kernels"
              isBad={predicted.hidden < littleHidden}
            />
          )}
          <Figure
            name="exposed"
            value={time(predicted.exposed)}
            help="the predicted time minus that of the kernels alone"
          />
          <Figure name="memory" value={bytes(predicted.peakBytes)} help="of the largest rank" />
        </dl>
      )}
      <span class={isBusy ? "took busy" : "took"} title="from the edit to all panes">
        {isBusy ? "…" : `${milliseconds.toFixed(0)} ms`}
      </span>
    </div>
  );
}

interface FigureProps {
  readonly name: string;
  readonly value: string;
  readonly help: string;
  readonly isBad?: boolean;
}

function Figure({ name, value, help, isBad = false }: FigureProps): JSX.Element {
  return (
    <div title={help} class={isBad ? "bad" : ""}>
      <dt>{name}</dt>
      <dd>
        {value}
        {isBad && <Icon name="warning" />}
      </dd>
    </div>
  );
}

interface Headline {
  readonly tone: "ok" | "wrong" | "refused" | "none";
  readonly title: string;
  readonly detail: string;
  /** What `detail` is about, and a click shows: a line of the program, or a pane. */
  readonly shows?: number | PaneName;
  /** How much was verified. */
  readonly scale?: string;
}

function verdictOf({ refused, failed, verdict, predicted }: Results): Headline {
  if (failed !== null) return { tone: "refused", title: "Stopped", detail: failed.split("\n")[0] ?? "" };
  const [first] = refused;
  if (first !== undefined) {
    const line = placeOf(first)?.line;
    const shows = editedRankOf(first) !== null ? "host" : line;
    const headline = { tone: "refused", title: "Not compiled", detail: headlineOf(first) } as const;
    return shows === undefined ? headline : { ...headline, shows };
  }
  if (verdict === null) return { tone: "none", title: "Compiling", detail: "" };
  const { ok, size, findings } = verdict;
  const scale = `${size.commands} commands on ${size.streams} streams of ${size.ranks} ranks`;
  const slower = predicted === null ? null : slowdownOf(predicted);
  if (ok && slower !== null) {
    const detail = `${percent(slower)} slower than without chunks`;
    return { tone: "ok", title: "Verified", detail, shows: "timeline", scale };
  }
  if (ok) return { tone: "ok", title: "Verified", detail: "no race, no deadlock in any order", scale };
  const errors = findings.filter(({ finding }) => finding.severity === "error");
  return {
    tone: "wrong",
    title: `${errors.length} finding${errors.length === 1 ? "" : "s"}`,
    detail: errors[0]?.finding.message ?? "",
    shows: "host",
  };
}

/** By which part of its time the serial form is faster; null if it is not. */
function slowdownOf({ serial, milliseconds }: PredictedPart): number | null {
  const slower = serial === null ? 0 : milliseconds / serial - 1;
  return slower < 0.005 ? null : slower;
}
