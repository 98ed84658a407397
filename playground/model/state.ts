/** What the page shows, as plain data, and the changes that controls make to it. */

export const paneNames = ["fusion", "passes", "host", "commands", "streams", "timeline", "curves"] as const;
export type PaneName = (typeof paneNames)[number];

export interface Document {
  /** A model is the file of another framework. */
  readonly kind: "program" | "dump" | "model";
  readonly name: string;
  readonly text: string;
  /** Whether its text differs from the file or example that the name stands for. */
  readonly isEdited?: boolean;
}

/** All that a link holds, and undo restores. */
export interface State {
  readonly document: Document;
  /** Given options by name, as texts. */
  readonly options: Readonly<Record<string, string>>;
  /** Given parameters of the program, as texts. */
  readonly params: Readonly<Record<string, string>>;
  /** The name of a shipped profile, or of `customProfile`. */
  readonly profile: string;
  readonly customProfile: string | null;
  /** Changed host programs, by the first rank that runs it. */
  readonly edits: Readonly<Record<string, string>>;
  readonly rank: number;
  readonly pane: PaneName;
}

export type Change =
  | { readonly kind: "text"; readonly text: string }
  /** Another document: from a file, an example, or the clipboard. */
  | { readonly kind: "open"; readonly document: Document; readonly params: Readonly<Record<string, string>> }
  /** An empty text clears the option. */
  | { readonly kind: "option"; readonly name: string; readonly text: string }
  | { readonly kind: "param"; readonly name: string; readonly text: string }
  /** Clears all sizes: those in the program's text apply. Dtypes stay, so that host programs have the same statements. */
  | { readonly kind: "ownSizes" }
  /** Clears these parameters, whose defaults an edit of the text changed. Part of the step before. */
  | { readonly kind: "changedSizes"; readonly names: readonly string[] }
  /** Edits of host programs that were carried over to other sizes. Part of the step before. */
  | { readonly kind: "carry"; readonly edits: State["edits"] }
  | { readonly kind: "profile"; readonly name: string; readonly text: string | null }
  | { readonly kind: "edit"; readonly rank: number; readonly text: string | null }
  | { readonly kind: "unedit" }
  | { readonly kind: "rank"; readonly rank: number }
  | { readonly kind: "pane"; readonly pane: PaneName }
  | { readonly kind: "restore"; readonly state: State };

function changed(state: State, change: Change): State {
  switch (change.kind) {
    case "text":
      return { ...state, document: { ...state.document, text: change.text, isEdited: true }, edits: {} };
    case "open": {
      const { document, params } = change;
      const options = kept(state.options);
      return { ...state, document, params, options, edits: {}, rank: 0, pane: paneFor(document, state.pane) };
    }
    case "option":
      return { ...state, options: assigned(state.options, change.name, change.text), edits: {} };
    case "param":
      return { ...state, params: assigned(state.params, change.name, change.text), edits: {} };
    case "ownSizes":
      return { ...state, params: without(state.params, sizesIn(state.params)), edits: {} };
    case "changedSizes":
      return { ...state, params: without(state.params, change.names) };
    case "carry":
      return { ...state, edits: change.edits };
    case "profile":
      return { ...state, profile: change.name, customProfile: change.text };
    case "edit":
      return { ...state, edits: assigned(state.edits, String(change.rank), change.text ?? "") };
    case "unedit":
      return { ...state, edits: {} };
    case "rank":
      return { ...state, rank: change.rank };
    case "pane":
      return { ...state, pane: change.pane };
    case "restore":
      return change.state;
  }
}

/** Of a dump, only its host program and what comes after it can be shown. */
export function paneFor({ kind }: Document, pane: PaneName): PaneName {
  return kind === "dump" && (pane === "fusion" || pane === "passes" || pane === "curves") ? "host" : pane;
}

const lasting: readonly string[] = ["devices", "devicesPerHost", "on", "whatIf", "seed"];

/** Options that fit any program stay when another is opened. */
function kept(options: State["options"]): State["options"] {
  return Object.fromEntries(Object.entries(options).filter(([name]) => lasting.includes(name)));
}

function assigned(
  record: Readonly<Record<string, string>>,
  name: string,
  text: string,
): Readonly<Record<string, string>> {
  const rest = without(record, [name]);
  return text === "" ? rest : { ...rest, [name]: text };
}

function sizesIn(params: State["params"]): readonly string[] {
  return Object.keys(params).filter((name) => Number.isFinite(Number(params[name])));
}

function without(record: Readonly<Record<string, string>>, names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(record).filter(([name]) => !names.includes(name)));
}

/** Whether two states compile differently. */
export function sameInput(a: State, b: State): boolean {
  return (
    a.document === b.document &&
    a.options === b.options &&
    a.params === b.params &&
    a.profile === b.profile &&
    a.customProfile === b.customProfile &&
    a.edits === b.edits
  );
}

/** Changes that are no steps: views, and what a step brings with it. */
const passive: readonly Change["kind"][] = ["rank", "pane", "carry", "changedSizes"];

/** Undo and redo. Changes of one field in a row are one step. */
export interface History {
  readonly past: readonly State[];
  readonly present: State;
  readonly future: readonly State[];
  /** The field that the last step changed; null after undo. */
  readonly field: string | null;
}

const mostSteps = 200;

export function startHistory(present: State): History {
  return { past: [], present, future: [], field: null };
}

export function step(history: History, change: Change): History {
  const { past, present } = history;
  const next = changed(present, change);
  if (passive.includes(change.kind)) return { ...history, present: next };
  const field = fieldOf(change);
  if (field !== null && field === history.field) return { ...history, present: next, future: [] };
  return { past: [...past, present].slice(-mostSteps), present: next, future: [], field };
}

/** Null: always a step of its own. */
function fieldOf(change: Change): string | null {
  switch (change.kind) {
    case "text":
      return "text";
    case "option":
    case "param":
      return `${change.kind} ${change.name}`;
    case "edit":
      return `edit ${change.rank}`;
    default:
      return null;
  }
}

export function undo(history: History): History {
  const previous = history.past.at(-1);
  if (previous === undefined) return history;
  const { past, present, future } = history;
  return { past: past.slice(0, -1), present: viewOf(previous, present), future: [present, ...future], field: null };
}

export function redo(history: History): History {
  const [next, ...future] = history.future;
  if (next === undefined) return history;
  const { past, present } = history;
  return { past: [...past, present], present: viewOf(next, present), future, field: null };
}

function viewOf(state: State, { rank, pane }: State): State {
  return { ...state, rank, pane };
}
