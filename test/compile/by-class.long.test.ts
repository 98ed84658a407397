/**
 * Fixtures and examples compiled by class, as they always are, and rank by rank: each rank lowered, recorded and
 * rewritten by itself, and all of them verified. The Programs, findings and predictions are the same. In few Programs a
 * rewrite decides otherwise for ranks that are alike, as for the stream of a local copy: there the representatives have
 * the same commands, and the findings are the same.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, it } from "vitest";
import {
  type AnyCompilation,
  compile,
  DiagnosticError,
  type Fusion,
  lower,
  type LowerOptions,
  type Program,
  record,
} from "@braid-compiler/braid";
import { passes } from "@braid-compiler/braid/internals";
import { link } from "../../src/commands/link/link.ts";
import { verified } from "../../src/compile/compile.ts";
import { createDraftReader } from "../../src/schedule/draft/draft-reader.ts";
import { applySchedule, type ScheduleOptions } from "../../src/schedule/schedule.ts";
import { parseProfile } from "../../src/simulate/parse-profile.ts";
import { symmetryOf } from "../../src/verify/classes/prove-classes.ts";
import { simulate } from "../../src/simulate/simulate.ts";
import { exampleFiles, loadExample } from "../support/example-program.ts";
import type { Fixture, Fixtures } from "../support/fixture.ts";

const root = path.resolve(import.meta.dirname, "../..");
const profile = parseProfile(readFileSync(path.join(root, "profiles/8xH100.json"), "utf8"), "8xH100");

interface Source {
  readonly fusion: Fusion;
  readonly devices: number;
  readonly lowering: Omit<LowerOptions, "rank" | "onPass">;
}

interface Case {
  readonly name: string;
  /** Null for host programs, which have no classes. */
  readonly load: () => Promise<Source | null>;
  readonly schedule: ScheduleOptions;
}

const schedules: readonly ScheduleOptions[] = [
  {
    dropSignals: true,
    inPlace: true,
    ownLast: true,
    splitChunks: 2,
    computeStreams: 1,
    batchSignals: true,
    copyStream: "dedicated",
  },
  { earlyGathers: true, gemmSums: true, computeStreams: 2, copyStream: "inline" },
];

const backends: readonly Source["lowering"][] = [
  { backend: "cuda", protocol: "put", deviceLoops: true },
  { backend: "cuda" },
  { backend: "nccl" },
];

const examples = exampleFiles.flatMap((file) =>
  backends.flatMap((lowering) =>
    schedules.map((schedule, i): Case => ({
      name: `examples/${file}, ${lowering.backend ?? ""}${lowering.deviceLoops === true ? " in loops" : ""}, schedule ${i}`,
      load: async () => {
        const devices = 4;
        const fusion = (await loadExample(file)).build({ devices });
        return "data" in fusion ? { fusion, devices, lowering } : null;
      },
      schedule,
    })),
  ),
);

const folders = await Promise.all(
  Object.values(passes).map(async ({ name: pass }) => {
    const file = path.join(root, "test/fixtures", pass, "fixtures.ts");
    const { default: all } = (await import(file)) as { readonly default: Fixtures };
    return Object.entries(all).map(([name, fixture]): Case => ({
      name: `${pass}/${name}`,
      load: async () => await Promise.resolve(sourceOf(fixture)),
      schedule: schedules[name.length % schedules.length] ?? {},
    }));
  }),
);

function sourceOf(fixture: Fixture): Source | null {
  const { rank: _, onPass: __, ...lowering } = fixture.options ?? {};
  const fusion = built(fixture);
  if (fusion === null) return null;
  const named = fusion.data().tensors.flatMap(({ mesh }) => mesh?.devices ?? []);
  return { fusion, devices: 1 + named.reduce((most, device) => Math.max(most, device), 0), lowering };
}

/** Null for a fixture of a diagnostic of the API. */
function built({ build }: Fixture): Fusion | null {
  try {
    return build();
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

/** Of each extent that is known at run time only. */
const sizes = Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`i${i}`, 24]));

interface Outcome {
  readonly recorded: Program;
  readonly program: Program;
  readonly report: AnyCompilation["report"];
}

function byClass({ fusion, devices, lowering }: Source, schedule: ScheduleOptions): AnyCompilation {
  return compile(fusion, { ...lowering, devices, sizes, schedule });
}

/** `compiled`: by class, of which nothing but the options is taken. */
function rankByRank({ fusion, devices, lowering }: Source, compiled: AnyCompilation): Outcome {
  const { protocol, devicesPerHost } = lowering;
  const lists = Array.from({ length: devices }, (_, rank) =>
    record(lower(fusion, { ...lowering, rank }), {
      rank,
      devices,
      sizes,
      ...(protocol === undefined ? {} : { protocol }),
    }),
  );
  const linked = link(lists);
  const recorded = devicesPerHost === undefined ? linked : { ...linked, devicesPerHost };
  const program = applySchedule(recorded, compiled.options.schedule ?? {}, createDraftReader(false));
  const { report } = verified({ ...compiled, recorded, program, reported: program, report: null }, { full: true });
  return { recorded, program, report };
}

function predictedTime({ program }: Outcome): number {
  return simulate(program, profile, { graph: true }).milliseconds;
}

function verdictOf({ report }: Outcome): unknown {
  const findings = report?.findings.map(({ code, severity, message }) => ({ code, severity, message }));
  return { ok: report?.ok, findings };
}

/** By rank: its commands but events, in any order, with kernels in place of their numbers. */
function workOf({ kernels, ranks }: Program): readonly (readonly string[])[] {
  return ranks.map(({ commands, streams }) =>
    commands
      .filter(({ kind }) => kind !== "recordEvent" && kind !== "waitEvent")
      .map((command) => {
        const stream = streams[command.stream]?.role;
        return JSON.stringify({
          ...command,
          stream,
          kernel: command.kind === "launch" ? kernels[command.kernel] : null,
        });
      })
      .sort(),
  );
}

/**
 * How many Programs were compared, had alike ranks, were not the same, and were not alike on alike ranks if made rank by
 * rank.
 */
const count = { compared: 0, alike: 0, different: 0, unlike: 0 };

function codesOf(run: () => unknown): readonly (string | undefined)[] {
  try {
    run();
    return [];
  } catch (error) {
    if (error instanceof DiagnosticError) return error.diagnostics.map((each) => each.code);
    throw error;
  }
}

async function isSame({ load, schedule }: Case): Promise<void> {
  const source = await load();
  if (source === null) return;
  let compiled: AnyCompilation;
  try {
    compiled = byClass(source, schedule);
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    const { code } = error.diagnostics[0] ?? {};
    const ranks = Array.from({ length: source.devices }, (_, rank) => rank);
    const refused = codesOf(() =>
      ranks.map((rank) => record(lower(source.fusion, { ...source.lowering, rank }), { rank, sizes })),
    );
    expect(refused).toContain(code);
    return;
  }
  const other = rankByRank(source, compiled);
  // A comparison value by value takes seconds.
  expect(JSON.stringify(compiled.recorded) === JSON.stringify(other.recorded)).toBe(true);
  expect(verdictOf(compiled)).toEqual(verdictOf(other));
  count.compared++;
  const group = symmetryOf(compiled.recorded);
  if (group !== null) count.alike++;
  const [own, theirs] = [predictedTime(compiled), predictedTime(other)];
  if (JSON.stringify(compiled.program) === JSON.stringify(other.program)) expect(own).toBe(theirs);
  else {
    count.different++;
    const [work, theirWork] = [workOf(compiled.program), workOf(other.program)];
    const representative = group?.representative ?? [];
    const isAlike = (works: typeof work): boolean =>
      representative.every((rank, own) => works[own]?.length === works[rank]?.length);
    expect(isAlike(work)).toBe(true);
    // Where ties leave alike ranks with different numbers of signals, no class does what each of them does.
    const isUnlike = !isAlike(theirWork) && representative.some((own) => work[own]?.length !== theirWork[own]?.length);
    if (isUnlike) count.unlike++;
    else for (const rank of new Set(representative)) expect(work[rank]).toEqual(theirWork[rank]);
    expect(Math.abs(own / theirs - 1)).toBeLessThan(0.03);
  }
}

it.each([...examples, ...folders.flat()])("$name", isSame);

it("many Programs have alike ranks, and few differ", () => {
  expect(count.alike).toBeGreaterThan(50);
  expect(count.different).toBeLessThan(count.compared / 10);
  expect(count.unlike).toBeLessThan(2);
});
