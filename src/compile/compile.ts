/**
 * The one way from a source to a Program that may run: lower for every rank, record, link, rewrite by a schedule, verify. Every command,
 * back end, simulation and choice of a schedule takes its Programs from here, so that what is verified is what runs.
 */
import type { CommandList } from "../commands/command-list.ts";
import { link } from "../commands/link/link.ts";
import type { Program } from "../commands/program.ts";
import { DiagnosticError } from "../diagnostics/diagnostic.ts";
import { type Sizes, sizesFromMeshes } from "../ir/sizes.ts";
import type { LowerOptions } from "./lower.ts";
import { type GivenOptions, type LoweringName, loweringNames, type OptionValue, scheduleNames } from "./options.ts";
import { type NamedNumbers, numbersByName, record } from "./record.ts";
import { pickOptions, requireOptions } from "./options/resolve.ts";
import { applySchedule, regeneratesEvents, type ScheduleOptions } from "../schedule/schedule.ts";
import { unlinkedReport, verify, type VerifyOptions, type VerifyReport } from "../verify/verify.ts";
import { type Lowered, lowerAll, type ProgramSource } from "./lower-all.ts";

/** Where a Program is to run. */
export type Target = OptionValue<"on">;

export interface CompileOptions extends Omit<LowerOptions, "rank" | "onPass"> {
  /** The number of ranks: 0 .. devices-1. At least as many as the Fusion's meshes name. */
  readonly devices: number;
  /** "cpu" if not given. */
  readonly on?: Target;
  /** How many worker streams a Stream loop alternates over; 4 if not given. */
  readonly streams?: number;
  /** Sizes of symbolic extents, by printed name (`i0`). Sharded axes take theirs from the meshes. */
  readonly sizes?: NamedNumbers;
  /** Values of the scalars that the host program takes, by name. */
  readonly scalars?: NamedNumbers;
  /** Rewrites of the linked Program. `copyStream` is `dedicated` with `on: "cuda"`, and `inline` elsewhere, if not given. */
  readonly schedule?: ScheduleOptions;
  /** "off": Programs are not proven, also those in which the verifier would find something. "on" if not given. */
  readonly verify?: OptionValue<"verify">;
  /** Whether the report of a right Program has notes on what it could do better; true if not given. */
  readonly notes?: boolean;
}

/** `Report` is `VerifyReport | null` where the options may have said `verify: "off"`. */
export interface Compilation<Report extends VerifyReport | null = VerifyReport> extends Lowered {
  readonly options: CompileOptions;
  readonly sizes: Sizes;
  /** As linked, before the schedule. */
  readonly recorded: Program;
  /** What runs. */
  readonly program: Program;
  /** Of the verifier; null with `verify: "off"`. */
  readonly report: Report;
  /** The Program that the report is about: `recorded` where a rewrite would mask what was found in it, else `program`. */
  readonly reported: Program;
}

/** A Compilation that may be unverified. */
export type AnyCompilation = Compilation<VerifyReport | null>;

/** Command lists that do not link: the ranks do not agree on a transfer. */
export interface Unlinked extends Lowered {
  readonly program: null;
  readonly sizes: Sizes;
  readonly report: VerifyReport;
  readonly error: DiagnosticError;
}

/**
 * Compiles a Fusion, or host programs as they are, for all ranks. What the verifier finds is in the report. Throws what lowering, record and
 * link throw, `bad-option`, `device-count`, `host-programs-differ` and `mesh-too-large`.
 */
export function compile(
  source: ProgramSource | Lowered,
  options: CompileOptions & { readonly verify?: "on" },
): Compilation;
export function compile(source: ProgramSource | Lowered, options: CompileOptions): AnyCompilation;
export function compile(source: ProgramSource | Lowered, options: CompileOptions): AnyCompilation {
  return requireLinked(tryCompile(source, options));
}

/** Throws what link threw. */
export function requireLinked(compiled: AnyCompilation | Unlinked): AnyCompilation {
  if (compiled.program === null) throw compiled.error;
  return compiled;
}

/** The same, but a Program whose lists do not link has a report, too. */
export function tryCompile(source: ProgramSource | Lowered, given: CompileOptions): AnyCompilation | Unlinked {
  requireCompileOptions(given);
  const options = withDefaults(given);
  const { devices, scalars = {}, schedule = {}, notes = true } = options;
  const { signature, hosts } = lowerAll(source, { devices, ...loweringOf(options) });
  const sizes = new Map([...sizesFromMeshes(signature.tensors), ...numbersByName(options.sizes)]);
  const lists = hosts.map((host, rank) =>
    record(host, { rank, sizes, scalars, ...pickOptions(["streams", "protocol"], options) }),
  );
  const recorded = linked(lists);
  if (recorded instanceof DiagnosticError) {
    return { signature, hosts, sizes, program: null, report: unlinkedReport(lists, recorded), error: recorded };
  }
  const program = applySchedule(recorded, schedule);
  const compiled = { signature, hosts, options, sizes, recorded, program, report: null, reported: program };
  return options.verify === "off" ? compiled : verified(compiled, { notes });
}

/** The same Compilation with a report. A rewrite regenerates every event, which would mask one that is missing in the recorded Program. */
export function verified(compilation: AnyCompilation, options: VerifyOptions = {}): Compilation {
  const { recorded, program } = compilation;
  if (program !== recorded && regeneratesEvents(compilation.options.schedule ?? {})) {
    const report = verify(recorded, options);
    if (!report.ok) return { ...compilation, report, reported: recorded };
  }
  return { ...compilation, report: verify(program, options), reported: program };
}

/** The same Compilation. Throws what the verifier found, if it looked for something and found it. */
export function requireVerified<C extends AnyCompilation>(compilation: C): C {
  const { report } = compilation;
  const [first, ...rest] = report?.findings.filter(({ severity }) => severity === "error") ?? [];
  if (first === undefined) return compilation;
  const repaired = report?.repair?.map(({ text }) => `repair, verified: ${text}`) ?? [];
  throw new DiagnosticError([
    { ...first, notes: [...(first.notes ?? []), ...repaired, 'to run it unproven: verify: "off", or --verify off'] },
    ...rest,
  ]);
}

/** Throws `bad-option` and `option-unknown`. */
function requireCompileOptions(given: CompileOptions): void {
  requireOptions([...loweringNames, "streams", "on", "verify"], given, [
    "devices",
    "sizes",
    "scalars",
    "schedule",
    "notes",
  ]);
  requireOptions(scheduleNames, given.schedule ?? {});
}

/** The options that lowering takes. */
export function loweringOf(options: CompileOptions): GivenOptions<LoweringName> {
  return pickOptions(loweringNames, options);
}

/** Copy engines of GPUs run one queue of copies at the link's full rate, and several at about half of it. */
function withDefaults(options: CompileOptions): CompileOptions {
  const copyStream = options.on === "cuda" ? "dedicated" : "inline";
  return { ...options, schedule: { copyStream, ...options.schedule } };
}

/** The error where ranks do not agree on a transfer; other errors are thrown. */
function linked(lists: readonly CommandList[]): Program | DiagnosticError {
  try {
    return link(lists);
  } catch (error) {
    if (error instanceof DiagnosticError && error.diagnostics.every(({ code }) => code === "transfer-mismatch")) {
      return error;
    }
    throw error;
  }
}
