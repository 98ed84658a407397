/** The page's state and its results: one value, which components read, and functions that change it. */
import { usualText } from "virtual:profiles";
import type { Diagnostic } from "../../src/diagnostics/diagnostic.ts";
import type { BuiltVariant, CompileRequest, Source, Variant, WorkPart } from "../compiler/messages.ts";
import type { LoweredPart, OtherOptions, PredictedPart, RepairPart, Replay, VerdictPart } from "../compiler/parts.ts";
import { carriedEdits, type Edit, editsToCarry } from "../model/carry-edits.ts";
import type { CurvePoint } from "../model/curves.ts";
import { devicesOf, hostsOf, profileTextOf, usualProfile } from "../model/inputs.ts";
import { atBrokenSyntax } from "../model/syntax-place.ts";
import { type Change, type History, redo, sameInput, startHistory, type State, step, undo } from "../model/state.ts";
import { type Builder, type Compiler, createBuilder, createCompiler, replayOnce } from "./workers.ts";

/**
 * What is known about the present program. Parts of the one before stay until they are replaced, or until it turns out
 * that the present one has none: `isStale` says so after an edit, and another document has nothing then.
 */
export interface Results {
  readonly defaults: Readonly<Record<string, number | string>>;
  readonly lowered: LoweredPart | null;
  readonly verdict: VerdictPart | null;
  readonly predicted: PredictedPart | null;
  readonly repair: RepairPart | null;
  readonly replay: Replay | null;
  /** Whether `lowered` is of the text before the edits that are refused. */
  readonly isStale: boolean;
  /** Why there is no program. */
  readonly refused: readonly Diagnostic[];
  /** A bug of Braid: its stack. */
  readonly failed: string | null;
  readonly isBusy: boolean;
  readonly isReplaying: boolean;
  /** Whether edits of host programs were lost, because the program has other statements now. */
  readonly isEditLost: boolean;
  /** From the edit to the last part. */
  readonly milliseconds: number;
}

export interface Store {
  readonly history: () => History;
  readonly results: () => Results;
  readonly change: (change: Change) => void;
  readonly undo: () => void;
  readonly redo: () => void;
  /** Null: a run of the program in a random order, by the seed. */
  readonly replay: (finding: number | null) => void;
  readonly closeReplay: () => void;
  /** Replays the first finding at the sizes in the program's text, at which values can be computed. */
  readonly replayAtOwnSizes: () => void;
  /** Predicts the present program at each point. The returned function stops it. */
  readonly curve: (
    points: readonly CurvePoint[],
    done: (milliseconds: readonly (number | null)[]) => void,
  ) => () => void;
  /** Options that make the present program faster. The returned function stops it. */
  readonly otherOptions: (done: (found: readonly OtherOptions[]) => void) => () => void;
  readonly subscribe: (listener: () => void) => () => void;
}

const nothing: Results = {
  defaults: {},
  lowered: null,
  verdict: null,
  predicted: null,
  repair: null,
  replay: null,
  isStale: false,
  refused: [],
  failed: null,
  isBusy: true,
  isReplaying: false,
  isEditLost: false,
  milliseconds: 0,
};

export function createStore(first: State): Store {
  const builder = createBuilder();
  const compiler = createCompiler();
  const listeners = new Set<() => void>();
  let history = startHistory(first);
  let results = nothing;
  let source: Source | null = null;
  /** The last program that was built: edits of host programs, options and the machine do not build it anew. */
  let built: LastBuild | null = null;
  // Started when the panes that need them are first shown.
  let curveId = 0;
  let curveBuilder: Builder | null = null;
  let curveCompiler: Compiler | null = null;
  let optionsCompiler: Compiler | null = null;
  let id = 0;
  /** Machine profiles by name. Those that a first visit does not show are loaded when one is chosen. */
  let profiles: ReadonlyMap<string, string> = new Map([[usualProfile, usualText]]);
  let stopReplay = (): void => {};
  /** Edits that wait for the program that they are carried to. */
  let carrying: readonly Edit[] = [];
  let replaysNext = false;
  /** Whether the last change was one of the text, and whether results are of the present document. */
  let isTyping = false;
  let isOwn = true;
  const publish = (next: Partial<Results>): void => {
    results = { ...results, ...next };
    for (const listener of listeners) listener();
  };

  const requestOf = (state: State, own: Source, number: number): CompileRequest => ({
    kind: "compile",
    id: number,
    source: own,
    devices: devicesOf(state),
    options: state.options,
    profile: profileTextOf(state, profiles),
    rank: state.rank,
    edits: Object.entries(state.edits).map(([rank, text]) => ({ rank: Number(rank), text })),
  });

  const compile = (state: State, own: Source, begun: number, number: number): void => {
    source = own;
    const request = requestOf(state, own, number);
    const seen = new Set<WorkPart["kind"]>();
    compiler.work(request, (answer) => {
      seen.add(answer.kind);
      if (answer.kind === "done") finish(seen, begun);
      else take(answer);
    });
  };

  const take = (answer: Exclude<WorkPart, { kind: "done" }>): void => {
    switch (answer.kind) {
      case "lowered":
        isOwn = true;
        publish({ lowered: answer.part, isStale: false, refused: [], failed: null });
        return carry(answer.part);
      case "verdict":
        return publish({
          verdict: answer.part,
          replay: null,
          repair: null,
          ...(answer.part.ok ? {} : { predicted: null }),
        });
      case "predicted":
        return publish({ predicted: answer.part, repair: null });
      case "repair":
        return publish({ repair: answer.part });
      case "refused":
        return publish({ refused: answer.diagnostics, failed: null });
      case "failed":
        return publish({ failed: answer.stack });
      case "curve":
      case "options":
        return;
    }
  };

  const carry = ({ hosts }: LoweredPart): void => {
    if (carrying.length === 0) return;
    const edits = carriedEdits(carrying, hosts);
    carrying = [];
    if (edits === null) publish({ isEditLost: true });
    else move(step(history, { kind: "carry", edits }));
  };

  /** Parts that this request did not answer are those of an earlier program. */
  const finish = (seen: ReadonlySet<WorkPart["kind"]>, begun: number): void => {
    publish({
      isBusy: false,
      milliseconds: performance.now() - begun,
      ...(seen.has("lowered") ? {} : isOwn ? { isStale: results.lowered !== null } : { lowered: null, defaults: {} }),
      ...(seen.has("verdict") ? {} : { verdict: null, repair: null, replay: null }),
      ...(seen.has("predicted") ? {} : { predicted: null }),
      ...(seen.has("repair") ? {} : { repair: null }),
    });
    if (!replaysNext) return;
    replaysNext = false;
    const { verdict } = results;
    if (verdict?.ok === true) replay(null);
    else if ((verdict?.findings[0]?.finding.interleaving ?? null) !== null) replay(0);
  };

  /** The reader of models comes when the first is opened. */
  const startModel = async (state: State, begun: number, number: number): Promise<void> => {
    publish({ defaults: {} });
    const { name, text } = state.document;
    const opened = await import("../compiler/open-model.ts").then(({ openModel }) => openModel(name, text));
    if (number !== id) return;
    if (opened.kind === "opened") return compile(state, opened.source, begun, number);
    source = null;
    publish({ refused: opened.diagnostics, failed: null });
    finish(new Set(), begun);
  };

  const start = (state: State): void => {
    const number = ++id;
    const begun = performance.now();
    stopReplay();
    publish({ isBusy: true, isReplaying: false });
    if (state.customProfile === null && profiles.size === 1 && !profiles.has(state.profile)) {
      void import("virtual:profile-texts").then(({ texts }) => {
        profiles = new Map(Object.entries(texts));
        if (number === id) start(history.present);
      });
      return;
    }
    const { document: file } = state;
    if (file.kind === "dump") {
      publish({ defaults: {} });
      return compile(state, { kind: "dump", file: file.name, text: file.text }, begun, number);
    }
    if (file.kind === "model") return void startModel(state, begun, number);
    const devices = devicesOf(state) ?? 1;
    const variant = { devices, hosts: hostsOf(state, devices), params: state.params };
    if (built !== null && isSameBuild(built, file.text, variant)) {
      publish({ defaults: built.defaults });
      return compile(state, built.source, begun, number);
    }
    builder.build({ kind: "build", text: file.text, variants: [variant] }, (answer) => {
      if (number !== id) return;
      if (answer.kind === "built") {
        const only = answer.variants[0] ?? null;
        if (only === null) return;
        const defaults = defaultsOf(only);
        const changed = isTyping ? changedDefaults(results.defaults, defaults, state.params) : [];
        publish({ defaults });
        if (changed.length > 0) return move(step(history, { kind: "changedSizes", names: changed }));
        built = { text: file.text, variant, defaults, source: { kind: "built", data: only.data } };
        return compile(state, built.source, begun, number);
      }
      source = null;
      publish(
        answer.kind === "refused"
          ? { refused: answer.diagnostics.map((each) => atBrokenSyntax(each, file.text)), failed: null }
          : { failed: answer.stack },
      );
      finish(new Set(), begun);
    });
  };

  const move = (next: History): void => {
    const before = history.present;
    history = next;
    const { present } = next;
    if (before.document.name !== present.document.name) isOwn = false;
    if (!sameInput(before, present)) start(present);
    else if (before.rank !== present.rank && source !== null) compile(present, source, performance.now(), ++id);
    for (const listener of listeners) listener();
  };

  const replay = (finding: number | null): void => {
    const { present } = history;
    if (source === null) return;
    stopReplay();
    publish({ isReplaying: true });
    const seed = Number(present.options["seed"] ?? 0);
    const request = { kind: "replay", compile: requestOf(present, source, id), finding, seed } as const;
    stopReplay = replayOnce(request, (answer) => {
      publish({
        isReplaying: false,
        ...(answer.kind === "failed" ? { failed: answer.stack } : { replay: answer.replay }),
      });
    });
  };

  const change = (next: Change): void => {
    const lost = editsToCarry(history.present, next, results.lowered?.hosts ?? []);
    if (lost.length > 0) carrying = lost;
    else if (next.kind === "edit" || next.kind === "unedit" || next.kind === "open" || next.kind === "restore")
      carrying = [];
    if (next.kind !== "pane" && next.kind !== "rank") {
      replaysNext = false;
      isTyping = next.kind === "text";
      if (next.kind === "open" || next.kind === "restore") isOwn = false;
      if (results.isEditLost) publish({ isEditLost: false });
    }
    move(step(history, next));
  };

  start(first);
  return {
    history: () => history,
    results: () => results,
    change,
    undo: () => {
      [carrying, isTyping] = [[], false];
      move(undo(history));
    },
    redo: () => {
      [carrying, isTyping] = [[], false];
      move(redo(history));
    },
    replay,
    replayAtOwnSizes: () => {
      change({ kind: "ownSizes" });
      replaysNext = true;
    },
    closeReplay: () => {
      publish({ replay: null });
    },
    curve: (points, done) => {
      const { present } = history;
      const { document: file, options } = present;
      let isStopped = false;
      curveBuilder ??= createBuilder();
      curveCompiler ??= createCompiler();
      const own = curveCompiler;
      const request = { kind: "build", text: file.text, variants: points.map(({ variant }) => variant) } as const;
      curveBuilder.build(request, (answer) => {
        if (isStopped || answer.kind !== "built") return;
        const profile = profileTextOf(present, profiles);
        const sources = answer.variants.map((variant, i) => {
          const { devices } = points[i]?.variant ?? { devices: 1 };
          return variant === null ? null : { source: { kind: "built", data: variant.data } as const, devices };
        });
        own.work({ kind: "curve", id: ++curveId, points: sources, options, profile }, (part) => {
          if (!isStopped && part.kind === "curve") done(part.milliseconds);
        });
      });
      return () => {
        isStopped = true;
      };
    },
    otherOptions: (done) => {
      let isStopped = false;
      if (source !== null) {
        optionsCompiler ??= createCompiler();
        const request = { kind: "options", id, compile: requestOf(history.present, source, id) } as const;
        optionsCompiler.work(request, (part) => {
          if (!isStopped && part.kind === "options") done(part.found);
        });
      }
      return () => {
        isStopped = true;
      };
    },
    subscribe: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

interface LastBuild {
  readonly text: string;
  readonly variant: Variant;
  readonly defaults: Results["defaults"];
  readonly source: Source;
}

function isSameBuild({ text, variant }: LastBuild, nextText: string, { devices, hosts, params }: Variant): boolean {
  return text === nextText && variant.devices === devices && variant.hosts === hosts && variant.params === params;
}

/** Parameters with values of their own, whose defaults in the text are others now, or gone. */
function changedDefaults(
  before: Results["defaults"],
  after: Results["defaults"],
  params: State["params"],
): readonly string[] {
  return Object.keys(params).filter((name) => Object.hasOwn(before, name) && before[name] !== after[name]);
}

function defaultsOf({ data: { defaults } }: BuiltVariant): Results["defaults"] {
  return defaults;
}
