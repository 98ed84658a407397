/** What the verifier found, and what would repair it. */
import type { JSX } from "preact";
import type { AddedLine } from "../../compiler/parts.ts";
import { Icon } from "../icons.tsx";
import type { PageProps } from "../props.ts";
import { useStore } from "../hooks.ts";

export function Findings({ store }: PageProps): JSX.Element | null {
  const { results } = useStore(store);
  const { verdict, repair } = results;
  const numbered = verdict?.findings.map((each, number) => ({ ...each, number })) ?? [];
  const shown = numbered.filter(({ finding }) => finding.severity !== "note");
  if (verdict === null || shown.length === 0) return null;
  const hosts = repair?.hosts ?? null;
  return (
    <section class="findings" aria-label="Findings">
      {repair === null && results.isBusy && !verdict.ok && <p class="hint keys">Looking for a repair …</p>}
      {repair !== null && (
        <div class="repair">
          {hosts === null ? (
            <span>No few statements repair it.</span>
          ) : (
            <>
              <span>
                {repair.added.map((added, i) => (
                  <span key={i}>{addedText(added)} </span>
                ))}
              </span>
              <button
                type="button"
                class="primary"
                onClick={() => {
                  for (const { rank, text } of hosts) store.change({ kind: "edit", rank, text });
                }}
              >
                <Icon name="wrench" /> Repair
              </button>
            </>
          )}
        </div>
      )}
      {shown.map(({ finding, text, number }, i) => (
        <details key={number} class={`finding ${finding.severity}`} open={i === 0}>
          <summary>
            <span class="severity">{finding.severity}</span> {finding.message}
          </summary>
          {finding.interleaving !== null && (
            <button
              type="button"
              disabled={results.isReplaying}
              onClick={() => {
                store.replay(number);
              }}
            >
              <Icon name="play" /> {results.isReplaying ? "Replaying …" : "Replay step by step"}
            </button>
          )}
          <pre>{text.split("\n").slice(1).join("\n")}</pre>
        </details>
      ))}
    </section>
  );
}

function addedText({ statement, after, ranks }: AddedLine): string {
  const where = after === null ? "" : ` after line ${after}`;
  return `Add ${statement.trim()}${where} of rank${ranks.length === 1 ? "" : "s"} ${ranks.join(", ")}: it verifies.`;
}
