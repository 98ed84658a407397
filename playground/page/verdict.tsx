/** The line above the panes: verified or not, predicted time, and how long the page took. */
import type { JSX } from "preact";
import { renderDiagnostic } from "../../src/diagnostics/diagnostic.ts";
import { bytes, percent, time } from "../model/units.ts";
import type { PageProps } from "./props.ts";
import { Icon } from "./icons.tsx";
import { useStore } from "./hooks.ts";
import type { Results } from "./store.ts";

export function Verdict({ store }: PageProps): JSX.Element {
  const { results } = useStore(store);
  const { predicted, isBusy, milliseconds } = results;
  const { tone, title, detail, scale = "" } = verdictOf(results);
  return (
    <div class={`verdict ${tone}`}>
      <div class="headline" role="status" aria-live="polite">
        <span class="badge">
          <Icon name={tone === "ok" ? "check" : "cross"} /> {title}
        </span>
        <span class="detail" title={scale}>
          {detail}
        </span>
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
              help="how much faster than the same program without chunks: communication, then computation"
            />
          )}
          {predicted.hidden !== null && (
            <Figure name="hidden" value={percent(predicted.hidden)} help="communication that runs under kernels" />
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
}

function Figure({ name, value, help }: FigureProps): JSX.Element {
  return (
    <div title={help}>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

interface Headline {
  readonly tone: "ok" | "wrong" | "refused" | "none";
  readonly title: string;
  readonly detail: string;
  /** How much was verified. */
  readonly scale?: string;
}

function verdictOf({ refused, failed, verdict }: Results): Headline {
  if (failed !== null) return { tone: "refused", title: "Stopped", detail: failed.split("\n")[0] ?? "" };
  const [first] = refused;
  if (first !== undefined) {
    return { tone: "refused", title: "Not compiled", detail: renderDiagnostic(first).split("\n")[0] ?? "" };
  }
  if (verdict === null) return { tone: "none", title: "Compiling", detail: "" };
  const { ok, size, findings } = verdict;
  const scale = `${size.commands} commands on ${size.streams} streams of ${size.ranks} ranks`;
  if (ok) return { tone: "ok", title: "Verified", detail: "no race, no deadlock in any order", scale };
  const errors = findings.filter(({ finding }) => finding.severity === "error");
  return {
    tone: "wrong",
    title: `${errors.length} finding${errors.length === 1 ? "" : "s"}`,
    detail: errors[0]?.finding.message ?? "",
  };
}
