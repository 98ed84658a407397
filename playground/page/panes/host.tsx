/** The host program of a rank as text that can be edited, with the verifier's findings and the repair. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { HostText } from "../../compiler/parts.ts";
import { hostOf } from "../../model/linking.ts";
import { editedRankOf, explanationOf, placeOf } from "../../model/marks.ts";
import { hunks, sideBySide } from "../../model/side-by-side.ts";
import { createEditor, type Editor, severityOf } from "../editor.ts";
import type { LineMark } from "../line-messages.ts";
import type { PageProps } from "../props.ts";
import { useLinked, useStore } from "../hooks.ts";
import { Empty } from "./empty.tsx";
import { Findings } from "./findings.tsx";
import { ReplayView } from "./replay.tsx";
import { SideBySide } from "./side-by-side.tsx";
import { RankPicker, shownRank } from "./rank-picker.tsx";

export function HostPane(props: PageProps): JSX.Element {
  const { store } = props;
  const { history, results } = useStore(store);
  const [beside, setBeside] = useState<number | null>(null);
  const rank = shownRank(store);
  const host = hostOf(results, rank);
  if (host === null) return <Empty results={results} />;
  const different = results.lowered?.hosts.filter((each) => each !== host) ?? [];
  const other = different.find(({ ranks }) => beside !== null && ranks.includes(beside)) ?? null;
  const others = host.ranks.filter((each) => each !== rank);
  const isEdited = Object.keys(history.present.edits).length > 0;
  return (
    <>
      <div class="toolbar">
        <RankPicker store={store} />
        <span class="hint">
          {results.isEditLost
            ? "Your edits are gone: the host program has other statements now. Undo brings them back."
            : `${others.length === 0 ? "Only this rank runs it." : `Ranks ${host.ranks.join(", ")} run it.`} Delete a Wait or a Synchronize to see what breaks.`}
        </span>
        {different.length > 0 && (
          <label class="picker">
            beside
            <select
              value={other === null ? "" : String(other.ranks[0])}
              onChange={({ currentTarget: { value } }) => {
                setBeside(value === "" ? null : Number(value));
              }}
            >
              <option value="">nothing</option>
              {different.map(({ ranks }) => (
                <option key={ranks[0]} value={String(ranks[0])}>
                  rank {ranks.join(", ")}
                </option>
              ))}
            </select>
          </label>
        )}
        {results.verdict?.ok === true && results.replay === null && (
          <button
            type="button"
            disabled={results.isReplaying}
            title="one run on the machine that the verifier uses, in a random order: what each command reads, and who wrote it"
            onClick={() => {
              store.replay(null);
            }}
          >
            {results.isReplaying ? "Running …" : "Step through a run"}
          </button>
        )}
        {isEdited && (
          <button
            type="button"
            onClick={() => {
              store.change({ kind: "unedit" });
            }}
          >
            Undo all edits
          </button>
        )}
      </div>
      {results.replay === null ? (
        <Findings {...props} />
      ) : (
        <ReplayView {...props} replay={results.replay} close={store.closeReplay} />
      )}
      {other === null ? (
        <HostEditor {...props} rank={rank} host={host} />
      ) : (
        <SideBySide
          titles={[`rank ${rank}`, `rank ${other.ranks[0] ?? 0}`]}
          parts={hunks(sideBySide(textOf(host), textOf(other)), 4)}
        />
      )}
    </>
  );
}

function HostEditor({
  store,
  pointing,
  rank,
  host,
}: PageProps & { readonly rank: number; readonly host: HostText }): JSX.Element {
  const { history, results } = useStore(store);
  const linked = useLinked(pointing);
  const holder = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);
  const owner = host.ranks[0] ?? rank;
  const printed = textOf(host);
  const text = history.present.edits[String(owner)] ?? printed;
  useEffect(() => {
    if (holder.current === null) return;
    const made = createEditor(holder.current, {
      label: `Host program of rank ${rank}`,
      language: "dump",
      text,
      onText: (next) => {
        store.change({ kind: "edit", rank: owner, text: next });
      },
      onLine: (line) => {
        pointing.point(line === null ? null : { kind: "host", rank, line });
      },
    });
    editor.current = made;
    return () => {
      made.destroy();
    };
  }, [store, pointing, rank, owner]);
  // Not `text`: the user may have typed since it was rendered.
  useEffect(() => {
    editor.current?.setText(store.history().present.edits[String(owner)] ?? printed);
  }, [text, printed, owner, store]);
  const { verdict, refused } = results;
  useEffect(() => {
    const wrong = refused.flatMap((diagnostic): LineMark[] => {
      const own = editedRankOf(diagnostic);
      if (own === null || !host.ranks.includes(own)) return [];
      const { line = 0, column = null } = placeOf(diagnostic) ?? {};
      return [{ line, column, severity: "error", message: explanationOf(diagnostic), fix: null }];
    });
    const marks = (verdict?.findings ?? []).flatMap(({ finding }) =>
      finding.commands.flatMap(({ rank: own, line }): LineMark[] =>
        host.ranks.includes(own) && line !== null
          ? [{ line, column: null, severity: severityOf(finding.severity), message: finding.message, fix: null }]
          : [],
      ),
    );
    editor.current?.setMarks([...marks, ...wrong], wrong);
  }, [verdict, refused, host]);
  useEffect(() => {
    const own = pointing.pointed()?.kind === "host";
    editor.current?.highlight(own ? [] : linked.hostLines(rank), !own);
  }, [linked, rank, pointing]);
  return <div class="editor host" ref={holder} />;
}

function textOf({ lines }: HostText): string {
  return lines.map(({ text }) => text).join("\n");
}
