/** The editor of the user's program, with the diagnostics of the compiler. */
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Diagnostic } from "../../src/diagnostics/diagnostic.ts";
import { editOf, explanationOf, placeOf } from "../model/marks.ts";
import type { FoundFinding } from "../compiler/parts.ts";
import type { Pointed } from "../model/linking.ts";
import { createEditor, type Editor, type LineMark, severityOf } from "./editor.ts";
import type { PageProps } from "./props.ts";
import { useLinked, useStore } from "./hooks.ts";
import type { Store } from "./store.ts";

export function SourceEditor({ store, pointing }: PageProps): JSX.Element {
  const { history, results } = useStore(store);
  const { document: file } = history.present;
  const linked = useLinked(pointing);
  const holder = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);

  useEffect(() => {
    if (holder.current === null) return;
    const made = createEditor(holder.current, {
      label: file.kind === "dump" ? "Dump" : "Program",
      language: file.kind === "dump" ? "dump" : "typescript",
      text: store.history().present.document.text,
      onText: (text) => {
        store.change({ kind: "text", text });
      },
      onLine: (line) => {
        pointing.point(line === null ? null : { kind: "source", line });
      },
    });
    editor.current = made;
    return () => {
      made.destroy();
    };
  }, [file.kind, store, pointing]);

  // Not `file.text`: the user may have typed since it was rendered.
  useEffect(() => {
    editor.current?.setText(store.history().present.document.text);
  }, [file, store]);
  const warnings = results.lowered?.warnings;
  const findings = results.verdict?.findings;
  useEffect(() => {
    const shown = results.refused.length > 0 ? results.refused : (warnings ?? []);
    const found = results.refused.length > 0 ? [] : (findings ?? []);
    editor.current?.setMarks([...shown.map((diagnostic) => markOf(diagnostic, store)), ...found.flatMap(marksOf)]);
  }, [results.refused, warnings, findings, store]);
  useEffect(() => {
    editor.current?.highlight(isInSource(pointing.pointed()) ? [] : linked.sources, !isInSource(pointing.pointed()));
  }, [linked, pointing]);

  return <div class="editor source" ref={holder} />;
}

function isInSource(pointed: Pointed | null): boolean {
  return pointed?.kind === "source";
}

/** Of a finding in a dump, at each of its commands. */
function marksOf({ finding, openedLines }: FoundFinding): readonly LineMark[] {
  const severity = severityOf(finding.severity);
  return openedLines.map((line) => ({ line, column: null, severity, message: finding.message, fix: null }));
}

function markOf(diagnostic: Diagnostic, store: Store): LineMark {
  const place = placeOf(diagnostic);
  const edit = editOf(diagnostic, store.history().present.document.text);
  return {
    line: place?.line ?? 1,
    column: place?.column ?? null,
    severity: severityOf(diagnostic.severity ?? "error"),
    message: explanationOf(diagnostic),
    fix:
      edit === null
        ? null
        : {
            label: edit.label,
            apply: () => {
              store.change({ kind: "text", text: edit.text });
            },
          },
  };
}
