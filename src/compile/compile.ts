/**
 * The one way from a source to a Program that may run: lower for every rank, record, link, schedule, verify. Commands,
 * back ends, simulation and the schedule choice take their Programs from here, so the Program that is verified is the
 * Program that runs.
 */
import type { CommandList } from "../commands/command-list.ts";
import { type Linked, linkWithWarnings } from "../commands/link/link.ts";
import type { Program } from "../commands/program.ts";
import { type Diagnostic, DiagnosticError, fail } from "../diagnostics/diagnostic.ts";
import type { HostProgram } from "../host/nodes.ts";
import type { Tensor } from "../ir/domain.ts";
import { originated } from "../ir/origin.ts";
import { type Sizes, sizesFromMeshes } from "../ir/sizes.ts";
import { hostCount } from "./host-count.ts";
import type { LowerOptions } from "./lower.ts";
import {
  type GivenOptions,
  type LoweringName,
  loweringNames,
  type OptionValue,
  recordingNames,
  scheduleNames,
} from "./options.ts";
import { type NamedNumbers, numbersByName, recordAll, recordNames } from "./record.ts";
import { loweringOn, pickOptions, requireOptions } from "./options/resolve.ts";
import { applyByRegion } from "../schedule/by-region.ts";
import { applySchedule, regeneratesEvents, type ScheduleOptions } from "../schedule/schedule.ts";
import type { Finding } from "../verify/finding.ts";
import {
  unlinkedReport,
  verify,
  verifyClasses,
  type VerifyOptions,
  type VerifyReport,
  withWarnings,
} from "../verify/verify.ts";
import type { OnProgress } from "../support/progress.ts";
import { classesOf, type Lowered, lowerAll, type ProgramSource } from "./lower-all.ts";

/** The back end on which a Program runs. */
export type Target = Exclude<OptionValue<"on">, "mpi">;

/** MPI runs what the CPU runs. */
export function targetOf(on: OptionValue<"on">): Target {
  return on === "mpi" ? "cpu" : on;
}

export interface CompileOptions extends Omit<LowerOptions, "rank" | "onPass"> {
  /** The number of ranks: 0 .. devices-1. At least as many as the Fusion's meshes name. */
  readonly devices: number;
  /** "cpu" if omitted. */
  readonly on?: Target;
  /** The number of worker streams that a Stream loop alternates over; 4 if omitted. */
  readonly streams?: OptionValue<"streams">;
  /** Where freed memory may be used again; "braid" if omitted (docs/verifier.md). */
  readonly allocator?: OptionValue<"allocator">;
  /** Communicators of uncoalesced sends and receives; "team" if omitted (docs/verifier.md). */
  readonly communicators?: OptionValue<"communicators">;
  /** Sizes of symbolic extents in elements, by printed name (`i0`). Sharded axes take theirs from the meshes. */
  readonly sizes?: NamedNumbers;
  /** Values of the host program's scalars, by name. */
  readonly scalars?: NamedNumbers;
  /** Rewrites of the linked Program. `copyStream` defaults to `dedicated` with `on: "cuda"`, otherwise to `inline`. */
  readonly schedule?: ScheduleOptions;
  /**
   * Instead of `schedule` and `protocol`: those of each region of given host programs, which have `regions`. The
   * schedule choice sets it.
   */
  readonly regions?: readonly RegionOptions[];
  /** With `regions`: whether no rewrite joins what two of them do (`acrossRegions`). False if omitted. */
  readonly regionsApart?: boolean;
  /**
   * "full": every rank is verified, even where one of each class would do (src/verify/classes/README.md). "off": the
   * Program is not verified, even if the verifier would find something. "on" if omitted.
   */
  readonly verify?: OptionValue<"verify">;
  /**
   * Whether the Program has only the ranks of the first replica, where all are replicas on one host each: equal groups
   * that at most meet in collectives. To prove, predict and explain it, not to run it. A number: the first replicas that
   * have so many ranks together. False if omitted.
   */
  readonly oneReplica?: boolean | number;
  /** Whether the report has notes on possible improvements of a correct Program; true if omitted. */
  readonly notes?: boolean;
  /** Hears which step is under way. */
  readonly onProgress?: OnProgress;
}

/** How a region is recorded and rewritten. */
export interface RegionOptions {
  readonly schedule: ScheduleOptions;
  readonly protocol: OptionValue<"protocol"> | undefined;
}

/** `Report` is `VerifyReport | null` if the options may have `verify: "off"`. */
export interface Compilation<Report extends VerifyReport | null = VerifyReport> extends Lowered {
  readonly options: CompileOptions;
  readonly sizes: Sizes;
  /** The linked Program before the schedule. */
  readonly recorded: Program;
  /** Transfers by which ranks may mean different tensors; the report has them too. */
  readonly warnings: readonly Diagnostic[];
  /** The Program that runs. */
  readonly program: Program;
  /** The verifier's report; null with `verify: "off"`. */
  readonly report: Report;
  /**
   * The Program that the report is about: `recorded` if it has findings that a rewrite would mask, otherwise `program`.
   */
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
 * Compiles a Fusion, or given host programs, for all ranks. The report has the verifier's findings. Throws what
 * lowering, record and link throw, `bad-option`, `option-unknown`, `device-count`, `host-programs-differ` and
 * `mesh-too-large`.
 */
export function compile(
  source: ProgramSource | Lowered,
  options: CompileOptions & { readonly verify?: "on" | "full" },
): Compilation;
export function compile(source: ProgramSource | Lowered, options: CompileOptions): AnyCompilation;
export function compile(source: ProgramSource | Lowered, options: CompileOptions): AnyCompilation {
  return requireLinked(tryCompile(source, options));
}

/** Throws the errors of lists that do not link. */
export function requireLinked(compiled: AnyCompilation | Unlinked): AnyCompilation {
  if (compiled.program === null) throw compiled.error;
  return compiled;
}

/** Like `compile`, but lists that do not link have a report instead of throwing. */
export function tryCompile(source: ProgramSource | Lowered, given: CompileOptions): AnyCompilation | Unlinked {
  requireCompileOptions(given);
  const { onProgress, ...own } = given;
  const options = withDefaults(own);
  const { devicesPerHost, notes = true } = options;
  const { lowered, sizes, lists } = listsOf(source, options, onProgress);
  onProgress?.("linking");
  const linked = tryLink(lists);
  if (linked instanceof DiagnosticError) {
    return { ...lowered, sizes, program: null, report: unlinkedReport(lists, linked), error: linked };
  }
  const { program: linkedProgram, warnings } = linked;
  const recorded: Program = {
    ...linkedProgram,
    ...(devicesPerHost === undefined ? {} : { devicesPerHost }),
    ...(lists.length === options.devices ? {} : { replicas: options.devices / lists.length }),
  };
  onProgress?.("scheduling");
  const program = scheduled(recorded, options);
  const compiled = { ...lowered, options, sizes, recorded, warnings, program, report: null, reported: program };
  return options.verify === "off"
    ? compiled
    : verified(compiled, { notes, ...(onProgress === undefined ? {} : { onProgress }) });
}

/** Lowers for all ranks, and records them, or one replica. */
function listsOf(
  source: ProgramSource | Lowered,
  options: CompileOptions,
  onProgress: OnProgress | undefined,
): { readonly lowered: Lowered; readonly sizes: Sizes; readonly lists: readonly CommandList[] } {
  const { devices, devicesPerHost = devices, scalars = {} } = options;
  hostCount(devices, options.devicesPerHost);
  const lowered = lowerAll(source, { devices, ...loweringOf(options) });
  const sizes = new Map([...sizesFromMeshes(lowered.signature.tensors), ...numbersByName(options.sizes)]);
  const recording = { devices, sizes, scalars, ...pickOptions(recordNames, options) };
  const protocols = options.regions?.map(({ protocol }) => protocol);
  const least = Number(options.oneReplica ?? 0);
  const oneReplica = least === 0 ? undefined : { devicesPerHost, least };
  const lists = recordAll(classesOf(lowered), recording, { protocols, onProgress, oneReplica });
  return { lowered, sizes, lists };
}

/**
 * Adds a report to the Compilation. A rewrite regenerates every event, which would mask one that is missing in the
 * recorded Program, so both Programs are verified.
 */
export function verified(compilation: AnyCompilation, given: VerifyOptions = {}): Compilation {
  const { recorded, program, warnings, hosts, decomposed } = compilation;
  const isLowered = decomposed !== undefined || compilation.options.regions !== undefined;
  const { notes = true } = given;
  const options: VerifyOptions = {
    full: compilation.options.verify === "full",
    ...given,
    notes: notes && (isLowered ? "lowered" : notes),
  };
  if (program !== recorded && hidesEvents(compilation.options)) {
    // Only a wrong Program's report is shown, which has no notes.
    const report = verifiedReport(recorded, { ...options, notes: false });
    if (!report.ok) {
      return { ...compilation, report: withWarnings(asRecorded(named(report, hosts)), warnings), reported: recorded };
    }
  }
  const report = named(verifiedReport(program, options), hosts);
  return { ...compilation, report: withWarnings(report, warnings), reported: program };
}

/** Throws `recording-too-long` where every rank is to be verified. */
function verifiedReport(program: Program, options: VerifyOptions): VerifyReport {
  const byClasses = options.full === true ? null : verifyClasses(program, options.notes ?? true, options.onProgress);
  if (byClasses !== null) return byClasses;
  requireVerifiable(program);
  return verify(program, { ...options, full: true });
}

function scheduled(recorded: Program, { schedule = {}, regions, regionsApart }: CompileOptions): Program {
  if (regions === undefined) return applySchedule(recorded, schedule);
  return applyByRegion(
    recorded,
    regions.map((region) => region.schedule),
    regionsApart,
  );
}

/** Whether a missing event of the recorded Program may be present in the Program that runs. */
function hidesEvents({ schedule = {}, regions }: CompileOptions): boolean {
  return regions !== undefined || regeneratesEvents(schedule);
}

/** With the names of the tensors that findings mention. */
function named(report: VerifyReport, hosts: readonly HostProgram[]): VerifyReport {
  const tensorsOf = ({ commands }: Finding): readonly Tensor[] => hosts[commands.at(-1)?.rank ?? 0]?.tensors ?? [];
  return { ...report, findings: report.findings.map((finding) => originated(finding, tensorsOf(finding))) };
}

/** The verifier keeps what each queue knows of each other one. Steps and memory grow with commands times queues. */
const mostPairs = 2 ** 32;

/** Throws `recording-too-long` for a Program that would take the verifier minutes. */
function requireVerifiable({ ranks }: Program): void {
  const commands = ranks.reduce((sum, list) => sum + list.commands.length, 0);
  const queues = ranks.reduce((sum, list) => sum + new Set(list.commands.map(({ stream }) => stream)).size, 0);
  if (commands * queues <= mostPairs) return;
  fail("recording-too-long", "the command lists of all ranks are too long to verify", {
    found: `${commands} commands on ${queues} queues: ${commands * queues} pairs of a command and a queue`,
    expected: `at most ${mostPairs} pairs`,
    help: 'use fewer devices or iterations, or run it unproven: verify: "off", or --verify off',
  });
}

function asRecorded(report: VerifyReport): VerifyReport {
  const note = "commands are those of the recorded list, before the schedule";
  const findings = report.findings.map((finding) => ({ ...finding, notes: [...(finding.notes ?? []), note] }));
  return { ...report, findings };
}

/** Returns the Compilation. Throws the verifier's findings, if there are any. */
export function requireVerified<C extends AnyCompilation>(compilation: C): C {
  const { report } = compilation;
  const [first, ...rest] = report?.findings.filter(({ severity }) => severity === "error") ?? [];
  if (first === undefined) return compilation;
  const note = "`braid verify` names the statements that a host program lacks";
  throw new DiagnosticError([
    { ...first, notes: [...(first.notes ?? []), note, 'to run it unproven: verify: "off", or --verify off'] },
    ...rest,
  ]);
}

/** Throws `bad-option` and `option-unknown`. */
function requireCompileOptions(given: CompileOptions): void {
  requireOptions([...loweringNames, ...recordingNames, "on", "verify"], given, [
    "devices",
    "sizes",
    "scalars",
    "schedule",
    "regions",
    "regionsApart",
    "oneReplica",
    "notes",
    "onProgress",
  ]);
  requireOptions(scheduleNames, given.schedule ?? {});
}

export function loweringOf(options: CompileOptions): GivenOptions<LoweringName> {
  return loweringOn(pickOptions(loweringNames, options), options.on);
}

/** Copy engines of GPUs run one queue of copies at the link's full rate, several queues at about half of it. */
function withDefaults(options: CompileOptions): CompileOptions {
  const copyStream = options.on === "cuda" ? "dedicated" : "inline";
  return { ...options, schedule: { copyStream, ...options.schedule } };
}

/** Returns the error if ranks do not agree on a transfer; throws other errors. */
function tryLink(lists: readonly CommandList[]): Linked | DiagnosticError {
  try {
    return linkWithWarnings(lists);
  } catch (error) {
    if (error instanceof DiagnosticError && error.diagnostics.every(({ code }) => code === "transfer-mismatch")) {
      return error;
    }
    throw error;
  }
}
