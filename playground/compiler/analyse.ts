/**
 * Takes a built program or a dump through the whole compiler and reports each part as soon as it is known: what was
 * lowered, the verdict, the prediction, and the repair of a program that does not verify.
 */
import { placedWithWarnings } from "../../src/compile/annotation-warnings.ts";
import { type Compilation, type Unlinked, tryCompile, verified } from "../../src/compile/compile.ts";
import { lowerAll, requireMeshDevices, type Signature } from "../../src/compile/lower-all.ts";
import { type HasFusionData, lower, type LowerOptions, lowerStreams } from "../../src/compile/lower.ts";
import { memoryModels } from "../../src/compile/memory-models.ts";
import { type GivenOptions, loweringNames, type OptionName } from "../../src/compile/options.ts";
import { loweringOn, pickOptions } from "../../src/compile/options/resolve.ts";
import { type AddedStatement, repairHosts } from "../../src/compile/repair/repair-hosts.ts";
import { reshardings } from "../../src/compile/reshardings.ts";
import { inputSizes } from "../../src/compile/program/input-sizes.ts";
import { lineBefore } from "../../src/compile/repair/line-before.ts";
import { dumpLines, printedLines } from "../../src/host/print/statement-lines.ts";
import { revived } from "../../src/compile/program/revive.ts";
import { type Diagnostic, DiagnosticError, renderDiagnostic } from "../../src/diagnostics/diagnostic.ts";
import { explainRun } from "../../src/explain/explain-run.ts";
import { serialOf } from "../../src/explain/serial-program.ts";
import { changed as changedMachine } from "../../src/explain/what-if.ts";
import type { HostProgram } from "../../src/host/nodes.ts";
import { parseContainers, type ParsedContainer } from "../../src/host/parse/parse.ts";
import { rankContainers } from "../../src/host/parse/rank-containers.ts";
import { print, printFusion, printProgramOfStage } from "../../src/host/print/print.ts";
import type { FusionData } from "../../src/ir/fusion-data.ts";
import { timelineRanks } from "../../src/report/build/run.ts";
import { timelineRun } from "../../src/report/build/explain-report.ts";
import { createWorks } from "../../src/report/build/works.ts";
import type { MachineProfile } from "../../src/simulate/machine-profile.ts";
import { parseProfile } from "../../src/simulate/parse-profile.ts";
import { simulate } from "../../src/simulate/simulate.ts";
import { at } from "../../src/support/invariant.ts";
import { commandsOf } from "./commands-view.ts";
import { linkedLines } from "./links.ts";
import type { CompileRequest, HostEdit, Source, WorkPart } from "./messages.ts";
import type { HostText, LoweredPart, PassText, PredictedPart, RepairPart, VerdictPart } from "./parts.ts";
import { compileOptionsOf, readOptions } from "./read-options.ts";
import { pictures } from "./shardings.ts";
import type { LineOf } from "../../src/verify/order/graph.ts";

/** What a later request about the same program needs. */
export interface Analysed {
  readonly compilation: Compilation;
  /** What results are compared with; null for host programs without a reference. */
  readonly reference: FusionData | null;
}

interface Loaded {
  /** What `explain` takes. */
  readonly source: HasFusionData | readonly HostProgram[];
  readonly hosts: readonly HostProgram[];
  readonly signature: Signature;
  readonly fusion: FusionData | null;
  readonly reference: FusionData | null;
  readonly warnings: readonly Diagnostic[];
  /** The texts that the user wrote, by rank; null if the programs are printed. */
  readonly containers: readonly ParsedContainer[] | null;
  readonly texts: readonly string[];
  /** The texts before the user's edits of host programs. */
  readonly printed: readonly string[];
  readonly isDump: boolean;
  /** Lines of the dump that the user opened; null for a program, and for host programs that the user changed. */
  readonly openedLines: LineOf | null;
}

/** Null if the ranks' lists do not link. Throws diagnostics. `repairs`: whether to look for a repair; it takes longest. */
export function analyse(
  request: CompileRequest,
  answer: (part: WorkPart) => void,
  { repairs = true }: { readonly repairs?: boolean } = {},
): Analysed | null {
  const given = readOptions(request.options, request.source.kind === "dump");
  const loaded = edited(load(request.source, request.devices, given), request.edits);
  const devices = loaded.hosts.length;
  answer({ kind: "lowered", part: loweredPart(loaded, request, given) });
  const lineOf = linesOf(loaded);
  const sizes = inputSizes(loaded.signature, given.sizes ?? new Map());
  const options = {
    ...(loaded.isDump ? memoryModels.nvfuser : {}),
    ...compileOptionsOf(given),
    devices,
    sizes,
    verify: "off",
  } as const;
  const start = performance.now();
  const compiled = tryCompile({ signature: loaded.signature, hosts: loaded.hosts }, options);
  const checked = compiled.program === null ? compiled : verified(compiled, { lineOf });
  const milliseconds = performance.now() - start;
  answer({ kind: "verdict", part: verdictPart(checked, loaded.openedLines, lineOf, milliseconds) });
  if (checked.program === null) return null;
  if (checked.report.ok) {
    answer({ kind: "predicted", part: predictedPart(loaded, checked, machineOf(request.profile, given), lineOf) });
  } else if (repairs) {
    answer({ kind: "repair", part: repairPart(checked, loaded.containers) });
  }
  return { compilation: checked, reference: loaded.reference };
}

/** The profile with the rates that `whatIf` changes. */
export function machineOf(text: string, { whatIf }: GivenOptions<OptionName>): MachineProfile {
  return changedMachine(parseProfile(text, "the profile"), whatIf ?? new Map());
}

/** The texts that are shown lack the empty line with which printed ones begin. */
const skippedLines = 1;

function linesOf({ containers, hosts }: Loaded): LineOf {
  if (containers !== null) return dumpLines(containers);
  const lines = printedLines(hosts);
  return (rank, path) => shown(lines(rank, path));
}

function shown(line: number | null): number | null {
  return line === null ? null : line - skippedLines;
}

/** Predicted milliseconds of a source; null if it cannot be compiled with these options. */
export function predictedTime(
  source: Source,
  devices: number,
  texts: Readonly<Record<string, string>>,
  profileText: string,
): number | null {
  try {
    const given = readOptions(texts, source.kind === "dump");
    const { signature, hosts } = load(source, devices, given);
    const sizes = inputSizes(signature, given.sizes ?? new Map());
    const compiled = tryCompile({ signature, hosts }, { ...compileOptionsOf(given), devices, sizes, verify: "off" });
    if (compiled.program === null) return null;
    return simulate(compiled.program, machineOf(profileText, given), { graph: true }).milliseconds;
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}

export function load(source: Source, devices: number | null, given: GivenOptions<OptionName>): Loaded {
  return source.kind === "dump"
    ? loadDump(source, devices, given)
    : loadBuilt(source, devices ?? source.devices ?? 1, given);
}

function loadBuilt(
  { data }: Extract<Source, { kind: "built" }>,
  devices: number,
  given: GivenOptions<OptionName>,
): Loaded {
  const { source, reference } = revived(data);
  const lowering = loweringOn(pickOptions(loweringNames, given), given.on);
  const own = { isDump: false, openedLines: null };
  if ("kind" in source) {
    requireMeshDevices(source.tensors, devices);
    const fusion: HasFusionData = { data: () => source };
    const { warnings } = placedWithWarnings(fusion, { ...lowering, sizes: given.sizes ?? new Map() });
    const { signature, hosts } = lowerAll(fusion, { ...lowering, devices });
    const texts = printedTexts(hosts);
    return {
      source: fusion,
      hosts,
      signature,
      fusion: source,
      reference: source,
      warnings,
      containers: null,
      texts,
      printed: texts,
      ...own,
    };
  }
  const hosts = source.map((host, rank) => lowerStreams(host, { ...lowering, rank }));
  const { signature } = lowerAll(hosts, { devices });
  requireMeshDevices(signature.tensors, devices);
  const texts = printedTexts(hosts);
  return {
    source: hosts,
    hosts,
    signature,
    fusion: null,
    reference,
    warnings: [],
    containers: null,
    texts,
    printed: texts,
    ...own,
  };
}

function loadDump(
  { file, text }: Extract<Source, { kind: "dump" }>,
  devices: number | null,
  { entry, as }: GivenOptions<OptionName>,
): Loaded {
  const container = entry === undefined ? null : Number(entry);
  const parsed = parseContainers(text, { file, roots: as?.roots ?? "era" });
  const opened = rankContainers(parsed, { file, devices, container });
  const hosts = opened.map(({ program }) => program);
  const { signature } = lowerAll(hosts, { devices: hosts.length });
  const texts = printedTexts(hosts);
  return {
    source: hosts,
    hosts,
    signature,
    fusion: null,
    reference: null,
    warnings: [],
    containers: null,
    texts,
    printed: texts,
    isDump: true,
    openedLines: dumpLines(opened),
  };
}

/**
 * With the host programs that the user changed: of a rank, and of all ranks that run the same one. They keep the lines
 * of the user's program.
 */
function edited(loaded: Loaded, edits: readonly HostEdit[]): Loaded {
  if (edits.length === 0) return loaded;
  const { hosts, texts } = loaded;
  const changed = new Map(edits.map(({ rank, text }) => [texts[rank], { rank, text }]));
  const parsed = new Map<string, ParsedContainer>();
  const containers = texts.map((printed, rank) => {
    const edit = changed.get(printed);
    const text = edit?.text ?? printed;
    const container = parsed.get(text) ?? onlyContainer(text, edit?.rank ?? rank);
    parsed.set(text, container);
    return { ...container, program: withOriginsOf(container.program, at(hosts, rank)) };
  });
  const all = containers.map(({ program }) => program);
  const { signature } = lowerAll(all, { devices: all.length });
  return {
    ...loaded,
    source: all,
    hosts: all,
    signature,
    containers,
    openedLines: null,
    texts: texts.map((text) => changed.get(text)?.text ?? text),
  };
}

function onlyContainer(text: string, rank: number): ParsedContainer {
  const file = `rank ${rank}`;
  return at(rankContainers(parseContainers(text, { file }), { file, devices: null, container: 0 }), 0);
}

/** Dumps do not hold what tensors are to the user. */
function withOriginsOf(program: HostProgram, { tensors }: HostProgram): HostProgram {
  return {
    ...program,
    tensors: program.tensors.map((tensor) => {
      const origin = tensors[tensor.id]?.origin;
      return origin === undefined ? tensor : { ...tensor, origin };
    }),
  };
}

function loweredPart(loaded: Loaded, { rank }: CompileRequest, given: GivenOptions<OptionName>): LoweredPart {
  const { fusion, hosts, warnings, texts, printed, signature } = loaded;
  const lowering = loweringOn(pickOptions(loweringNames, given), given.on);
  const sizes = given.sizes ?? new Map<string, number>();
  return {
    devices: hosts.length,
    isFusion: fusion !== null,
    passes: fusion === null ? [] : passTexts(fusion, { ...lowering, rank: Math.min(rank, hosts.length - 1) }),
    tensors: fusion === null ? [] : pictures({ ...fusion, tensors: signature.tensors }, sizes),
    fusion: fusion === null ? [] : linkedLines(printFusion({ ...fusion, tensors: signature.tensors }), fusion.tensors),
    reshardings: fusion === null ? [] : reshardings({ data: () => fusion }, { ...lowering, sizes }),
    warnings,
    hosts: hostTexts(hosts, texts, printed),
  };
}

function passTexts(fusion: FusionData, options: LowerOptions): readonly PassText[] {
  const before = printFusion(fusion);
  const passes: PassText[] = [{ name: "input", text: before, changed: true, milliseconds: 0 }];
  lower(
    { data: () => fusion },
    {
      ...options,
      onPass: ({ pass, program, changed, milliseconds }) => {
        const last = passes.at(-1)?.text ?? before;
        const text = changed ? printProgramOfStage(program) : last;
        passes.push({ name: pass, text, changed: text !== last, milliseconds });
      },
    },
  );
  return passes;
}

function hostTexts(
  hosts: readonly HostProgram[],
  texts: readonly string[],
  printed: readonly string[] = texts,
): readonly HostText[] {
  const found = new Map<string, number[]>();
  texts.forEach((text, rank) => {
    const ranks = found.get(text) ?? [];
    found.set(text, ranks);
    ranks.push(rank);
  });
  return [...found].map(([text, ranks]) => {
    const first = at(ranks, 0);
    return { lines: linkedLines(text, at(hosts, first).tensors), ranks, printed: at(printed, first).trimEnd() };
  });
}

function verdictPart(
  checked: Compilation | Unlinked,
  openedLines: LineOf | null,
  lineOf: LineOf,
  milliseconds: number,
): VerdictPart {
  const { ok, size, findings } = checked.report;
  return {
    ok,
    size,
    findings: findings.map((finding) => ({
      finding,
      text: renderDiagnostic(finding),
      openedLines: finding.commands.flatMap(({ rank, path }) => openedLines?.(rank, path) ?? []),
    })),
    milliseconds,
    commands: checked.program === null ? [] : commandsOf(checked.reported, lineOf),
  };
}

function repairPart(compilation: Compilation, containers: Loaded["containers"]): RepairPart {
  const repaired = repairHosts(compilation);
  if (repaired === null) return { hosts: null, added: [] };
  const before = (ranks: AddedStatement["ranks"], place: Pick<AddedStatement, "follows" | "opensElse">) =>
    lineBefore(compilation.hosts, containers, at(ranks, 0), place);
  return {
    hosts: hostTexts(repaired.hosts, printedTexts(repaired.hosts)).map(({ ranks, lines }) => ({
      rank: at(ranks, 0),
      text: lines.map(({ text }) => text).join("\n"),
    })),
    added: repaired.added.map(({ ranks, text, ...place }) => ({
      ranks,
      statement: text,
      after: containers === null ? shown(before(ranks, place)) : before(ranks, place),
    })),
  };
}

function predictedPart(
  { source, fusion, texts }: Loaded,
  compilation: Compilation,
  profile: MachineProfile,
  lineOf: LineOf,
): PredictedPart {
  const { program, options, recorded } = compilation;
  const simulation = simulate(program, profile, { graph: true });
  const serial = fusion === null ? null : serialOf(source, options);
  const run = explainRun({ program, ...simulation }, profile, { serial, graph: true });
  const named = [...new Set(texts)];
  const works = createWorks(program, { hostOf: (rank) => named.indexOf(at(texts, rank)), lineOf });
  const timed = timelineRun({ program, explained: run, ...simulation, name: "predicted" }, works);
  const bytes = recorded.ranks.map(({ arenaBytes }) => Object.values(arenaBytes).reduce((sum, each) => sum + each, 0));
  return {
    machine: profile.machine,
    milliseconds: run.milliseconds,
    serial: serial === null ? null : simulate(serial, profile, { graph: true }).milliseconds,
    floor: run.floor,
    exposed: run.exposed,
    hidden: run.overlap.overlap,
    peakBytes: bytes.reduce((most, each) => Math.max(most, each), 0),
    causes: run.causes,
    timeline: { unit: "milliseconds", ranks: timelineRanks(program), runs: [timed], ...works.rows() },
    assumptions: run.assumptions.map(({ text }) => text),
  };
}

/** Each text printed once: ranks share programs. */
function printedTexts(hosts: readonly HostProgram[]): readonly string[] {
  const known = new Map<HostProgram, string>();
  return hosts.map((host) => {
    const text = known.get(host) ?? print(host).slice(skippedLines);
    known.set(host, text);
    return text;
  });
}
