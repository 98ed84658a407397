/** The editor of the user's program, with the diagnostics of the compiler. */
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Diagnostic } from "../../src/diagnostics/diagnostic.ts";
import { sizesFor } from "../model/missing-sizes.ts";
import { editedRankOf, editOf, explanationOf, placeOf } from "../model/marks.ts";
import type { FoundFinding } from "../compiler/parts.ts";
import { newDocument } from "../model/inputs.ts";
import type { Pointed } from "../model/linking.ts";
import type { State } from "../model/state.ts";
import { createEditor, type Editor, severityOf } from "./editor.ts";
import type { LineMark } from "./line-messages.ts";
import type { PageProps } from "./props.ts";
import { useLinked, useStore } from "./hooks.ts";
import type { Store } from "./store.ts";

/** Milliseconds. */
const typingPause = 400;

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
      onText: (text, isNew) => {
        takeText(store, text, isNew);
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
    const refused = results.refused.flatMap((each) => (editedRankOf(each) === null ? [markOf(each, store)] : []));
    const show = (): void => {
      const marks = [
        ...(warnings ?? []).map((warning) => markOf(warning, store)),
        ...(findings ?? []).flatMap(marksOf),
      ];
      editor.current?.setMarks(refused.length > 0 ? refused : marks, refused);
    };
    if (refused.length === 0) return show();
    // What is being written is refused until it is complete.
    const timer = setTimeout(show, typingPause);
    return () => {
      clearTimeout(timer);
    };
  }, [results.refused, warnings, findings, store]);
  useEffect(() => {
    editor.current?.highlight(isInSource(pointing.pointed()) ? [] : linked.sources, !isInSource(pointing.pointed()));
  }, [linked, pointing]);

  return <div class="editor source" ref={holder} />;
}

function isInSource(pointed: Pointed | null): boolean {
  return pointed?.kind === "source";
}

/** A new text is another document; where the editor's own undo brings one back, the page's undo brings its options, too. */
function takeText(store: Store, text: string, isNew: boolean): void {
  const { past, present, future } = store.history();
  const isOther = (state: State | undefined): boolean =>
    state !== undefined && state.document.name !== present.document.name && state.document.text === text;
  if (isOther(past.at(-1))) store.undo();
  else if (isOther(future[0])) store.redo();
  else if (isNew) store.change({ kind: "open", document: newDocument(text), params: {} });
  else store.change({ kind: "text", text });
}

/** Of a finding in a dump, at each of its commands. */
function marksOf({ finding, openedLines }: FoundFinding): readonly LineMark[] {
  const severity = severityOf(finding.severity);
  return openedLines.map((line) => ({ line, column: null, severity, message: finding.message, fix: null }));
}

function markOf(diagnostic: Diagnostic, store: Store): LineMark {
  const { line, column } = placeIn(store.history().present.document.text, diagnostic);
  return {
    line,
    column,
    severity: severityOf(diagnostic.severity ?? "error"),
    message: explanationOf(diagnostic),
    fix: fixOf(diagnostic, store),
  };
}

/** The column of a name that was found in the line; compiling moves what is right of another name. */
function placeIn(text: string, diagnostic: Diagnostic): Pick<LineMark, "line" | "column"> {
  const { line = 0, column = null } = placeOf(diagnostic) ?? {};
  const { found = "" } = diagnostic;
  const start = /^[\w$]+$/u.test(found) ? (text.split("\n")[line - 1] ?? "").indexOf(found) : -1;
  return { line, column: start < 0 ? column : start + 1 };
}

function fixOf(diagnostic: Diagnostic, store: Store): LineMark["fix"] {
  const { document: file, options } = store.history().present;
  const edit = editOf(diagnostic, file.text);
  if (edit !== null) {
    return {
      label: edit.label,
      apply: () => {
        store.change({ kind: "text", text: edit.text });
      },
    };
  }
  const sizes = sizesFor(diagnostic, options["sizes"]);
  if (sizes === null) return null;
  return {
    label: `Use these sizes: ${sizes}`,
    apply: () => {
      store.change({ kind: "option", name: "sizes", text: sizes });
    },
  };
}
