/** A CodeMirror editor with diagnostics, and lines that are highlighted because something else is pointed at. */
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, indentOnInput, StreamLanguage } from "@codemirror/language";
import { typescriptLanguage } from "@codemirror/lang-javascript";
import { type Diagnostic as Mark, lintGutter, setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState, type Extension, StateEffect, StateField } from "@codemirror/state";
import {
  Decoration,
  type DecorationSet,
  drawSelection,
  EditorView,
  highlightActiveLine,
  highlightActiveLineGutter,
  keymap,
  lineNumbers,
  type ViewUpdate,
} from "@codemirror/view";
import { codeColors } from "./code-colors.ts";
import { folding, foldStart } from "./folding.ts";
import { type LineMark, lineMessages, showMessages } from "./line-messages.ts";

export type Language = "typescript" | "dump";

export function severityOf(severity: "error" | "warning" | "note"): LineMark["severity"] {
  return severity === "note" ? "info" : severity;
}

export interface EditorOptions {
  readonly label: string;
  readonly language: Language;
  readonly text: string;
  /** `isNew`: the text replaced all of another one, or filled an empty editor. */
  readonly onText: (text: string, isNew: boolean) => void;
  /** The line under the pointer or the cursor changed. */
  readonly onLine: (line: number | null) => void;
}

export interface Editor {
  readonly setText: (text: string) => void;
  /** Underlines `marks`, and shows the messages of `messages` between the lines. */
  readonly setMarks: (marks: readonly LineMark[], messages?: readonly LineMark[]) => void;
  readonly highlight: (lines: readonly number[], scroll: boolean) => void;
  readonly destroy: () => void;
}

const highlightLines = StateEffect.define<readonly number[]>();
const highlighted = Decoration.line({ class: "cm-linked" });
const highlightField = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (set, { effects, state, changes }) => {
    for (const effect of effects) {
      if (!effect.is(highlightLines)) continue;
      const known = effect.value.filter((line) => line >= 1 && line <= state.doc.lines);
      return Decoration.set(
        known.toSorted((a, b) => a - b).map((line) => highlighted.range(state.doc.line(line).from)),
      );
    }
    return set.map(changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

const keywords =
  /^(?:FOR|from|to|IF|ELSE|SetCurrentStream|GetCurrentStream|Synchronize|Wait|Stream|Communication|P2PCommunication|StartCoalescing|EndCoalescing|ALLOCATE|Deallocate|ShareMemHandles|HostUnit\d*|PostOnStream|Launch\w*|HirAliasSelect|ShardByStream)\b/u;

const dump = StreamLanguage.define({
  name: "host-ir",
  token: (stream) => {
    if (stream.match(/^\/\/.*/u)) return "comment";
    if (stream.match(keywords)) return "keyword";
    if (stream.match(/^T\d+/u)) return "variableName";
    if (stream.match(/^(?:iS|iStreamIdx|ideviceIdx\.[xyz]|rS|bS)\d*/u)) return "typeName";
    if (stream.match(/^%?[A-Za-z_][\w.]*(?=\s*\()/u)) return "propertyName";
    if (stream.match(/^\d+/u)) return "number";
    stream.match(/^(?:[A-Za-z_]\w*|.)/u);
    return null;
  },
});

/** Lines of programs wrap; those of dumps are too long for that. */
const languages: Readonly<Record<Language, Extension>> = {
  typescript: [typescriptLanguage, EditorView.lineWrapping, folding],
  dump,
};

export function createEditor(parent: HTMLElement, options: EditorOptions): Editor {
  const { label, language, text, onText, onLine } = options;
  const types = new Compartment();
  // Set while the page itself replaces the text.
  let isReplacing = false;
  let pointed: number | null = null;
  const tell = (line: number | null): void => {
    if (line !== pointed) onLine((pointed = line));
  };
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        highlightActiveLineGutter(),
        highlightActiveLine(),
        history(),
        drawSelection(),
        indentOnInput(),
        bracketMatching(),
        lintGutter(),
        highlightField,
        lineMessages,
        languages[language],
        types.of([]),
        codeColors,
        keymap.of([...defaultKeymap, ...historyKeymap, indentWithTab]),
        EditorView.contentAttributes.of({
          "aria-label": label,
          "aria-description": "Escape, then Tab, leaves the editor.",
        }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged && !isReplacing) onText(update.state.doc.toString(), replacesAll(update));
          if (update.selectionSet && view.hasFocus) tell(lineAt(view, view.state.selection.main.head));
        }),
        EditorView.domEventHandlers({
          mousemove: (event) => {
            const position = view.posAtCoords({ x: event.clientX, y: event.clientY });
            tell(position === null ? null : lineAt(view, position));
          },
          mouseleave: () => {
            tell(null);
          },
        }),
      ],
    }),
  });
  if (language === "typescript") {
    loadTypes(view, types);
    foldStart(view);
  }
  // Scrolls by keys although its text is wider than it.
  view.scrollDOM.tabIndex = 0;
  return {
    setText: (next) => {
      if (next === view.state.doc.toString()) return;
      isReplacing = true;
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: next } });
      isReplacing = false;
      if (language === "typescript") foldStart(view);
    },
    setMarks: (marks, messages = []) => {
      view.dispatch(
        setDiagnostics(
          view.state,
          marks.map((mark) => markOf(view, mark)),
        ),
        { effects: showMessages.of(messages) },
      );
    },
    highlight: (lines, scroll) => {
      const [first] = lines;
      const target = scroll && first !== undefined && first >= 1 && first <= view.state.doc.lines ? first : null;
      view.dispatch({
        effects: [
          highlightLines.of(lines),
          ...(target === null ? [] : [EditorView.scrollIntoView(view.state.doc.line(target).from, { y: "nearest" })]),
        ],
      });
    },
    destroy: () => {
      view.destroy();
    },
  };
}

/** When the editor is first used: its types are several times as large as the page. */
function loadTypes(view: EditorView, types: Compartment): void {
  const load = async (): Promise<void> => {
    const { typesExtension } = await import("./types.ts");
    view.dispatch({ effects: types.reconfigure(typesExtension()) });
  };
  view.contentDOM.addEventListener("focus", () => void load(), { once: true });
}

/** Whether all of the text was selected, or there was none. */
function replacesAll({ startState: { doc, selection }, state }: ViewUpdate): boolean {
  const { from, to } = selection.main;
  const text = doc.toString();
  return `${text.slice(0, from)}${text.slice(to)}`.trim() === "" && state.doc.toString().trim() !== "";
}

function lineAt(view: EditorView, position: number): number {
  return view.state.doc.lineAt(position).number;
}

function markOf({ state }: EditorView, { line, column, severity, message, fix }: LineMark): Mark {
  const at = state.doc.line(Math.min(Math.max(1, line), state.doc.lines));
  const indent = /^\s*/u.exec(at.text)?.[0].length ?? 0;
  const from = Math.min(at.from + (column === null ? indent : column - 1), at.to);
  const word = /^[\w$.]+/u.exec(state.sliceDoc(from, at.to))?.[0].length ?? 1;
  const to = column === null ? at.to : Math.min(from + word, at.to);
  const actions = fix === null ? [] : [{ name: fix.label, apply: fix.apply }];
  return { from, to: Math.max(from, to), severity, message, actions };
}
