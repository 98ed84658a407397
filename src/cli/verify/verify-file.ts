/** Verifies a program file or a dump with flags and returns a report. Nothing is printed here. */
import { writeFile } from "node:fs/promises";
import type { Program } from "../../commands/program.ts";
import {
  type AnyCompilation,
  type Compilation,
  type CompileOptions,
  tryCompile,
  type Unlinked,
  verified,
} from "../../compile/compile.ts";
import { lowerAll } from "../../compile/lower-all.ts";
import {
  flagOf,
  type GivenOptions,
  loweringNames,
  type NamesOf,
  type Options,
  recordingNames,
} from "../../compile/options.ts";
import { type CompileGiven, flagTexts, shellQuoted } from "../../compile/options/flags-text.ts";
import { loweringOn, pickOptions } from "../../compile/options/resolve.ts";
import { inputSizes } from "../../compile/program/input-sizes.ts";
import { addedCall } from "../../compile/repair/call-text.ts";
import { lineBefore } from "../../compile/repair/line-before.ts";
import { type AddedStatement, type HostRepair, repairHosts } from "../../compile/repair/repair-hosts.ts";
import type { Diagnostic } from "../../diagnostics/diagnostic.ts";
import { print } from "../../host/print/print.ts";
import { printedLines } from "../../host/print/statement-lines.ts";
import type { Parameters } from "../../host/program-file.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import type { Sizes } from "../../ir/sizes.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import { verifyReport } from "../../report/build/verify-report.ts";
import { at } from "../../support/invariant.ts";
import { reasonText, systemReason } from "../../support/wording.ts";
import { type CompiledLayers, type FewerLayers, further, withFewerLayers } from "../../tune/regions/fewer-layers.ts";
import { hasOneLayerMore } from "../../verify/layers.ts";
import type { ProgramSize, VerifyReport } from "../../verify/verify.ts";
import { profileToChooseWith, withOwnProfile } from "../flags/profile.ts";
import type { ApartBuilding } from "../program/apart/build-apart.ts";
import { buildProgram, warnOfAllLayers } from "../program/build-program.ts";
import { optimizeLater } from "../program/optimize-later.ts";
import { type CompiledFile, compileFile } from "../program/compile-file.ts";
import { isDumpFile, memoryModelOf, requireNotLowered } from "../program/dump-file.ts";
import { requireMatchingReference } from "../program/matching-reference.ts";
import { modelSizes } from "../program/program-of-model.ts";
import { reportPage } from "../report/report-page.ts";
import type { ProgressStep } from "../terminal/progress.ts";
import type { LineOf } from "../../verify/order/graph.ts";

export type VerifyFlags = Options<NamesOf<"verify">>;

export interface VerifyResult {
  readonly file: string;
  readonly flags: VerifyFlags;
  readonly params: Parameters;
  readonly options: Partial<LoweringOptions>;
  readonly sizes: Sizes;
  /** The verified Program; null if the lists do not link. */
  readonly program: Program | null;
  /** With one finding for each cause and buffer, unless `--print all` is given. */
  readonly report: VerifyReport;
  /** The statements that the host programs lack; null if there are none, or no few statements repair them. */
  readonly added: readonly AddedLine[] | null;
  /** The same in words: calls to add, or lines of a dump. */
  readonly repair: readonly string[];
  /** The chosen schedule and the reason; null if none was to be chosen. */
  readonly choice: string | null;
  /** Equal layers that few others stood for. */
  readonly missingLayers: number;
  /** Time from lowering to the verdict. */
  readonly milliseconds: number;
  /** Paths of the written files. */
  readonly written: readonly string[];
  /** A diagnostic for each file that could not be written: it hides no finding. */
  readonly unwritten: readonly Diagnostic[];
  /** The `braid run` that replays the counterexample; null where none was written. */
  readonly replay: string | null;
}

export async function verifyFile(
  file: string,
  asked: VerifyFlags,
  given: CompileGiven,
  { building, step }: { readonly building: ApartBuilding | null; readonly step: ProgressStep },
): Promise<VerifyResult> {
  const flags = await withOwnProfile(asked, given);
  const profile = await profileToChooseWith(flags);
  const options = pickOptions(loweringNames, given);
  step(`loading ${file}`);
  requireNotLowered(file, options);
  // Findings name all ranks and layers, and a report draws them.
  const isWhole = flags.full === "full" || flags.report !== undefined;
  // A chosen schedule orders layers by the memory that all of them need.
  const findLayers = isWhole || profile !== null ? undefined : layersOfLarge;
  const built = await buildProgram(file, flags, options, building, findLayers);
  const { source, signature, reference, model, params, lineOf: linesOfDump, text, containers, layers: fewer } = built;
  optimizeLater();
  const sizes = inputSizes(signature, modelSizes(model, flags.sizes));
  if (flags.reference !== undefined && reference !== null) requireMatchingReference(reference.data(), signature, sizes);
  const start = performance.now();
  const verifying = { lineOf: linesOfDump, full: flags.full === "full", onProgress: step };
  const verify = async (oneReplica: boolean, layers: FewerLayers | null): Promise<Verified> => {
    step(`lowering for ${flags.devices} devices`);
    // The choice lowers every candidate itself, and what few layers are made of is lowered apart.
    const isLowered = profile === null && layers === null;
    const lowered = isLowered ? lowerAll(source, { ...loweringOn(options, flags.on), devices: flags.devices }) : source;
    step("verifying");
    const compiling = { onProgress: step, oneReplica };
    const compiled = await compileFile(file, lowered, flags, given, sizes, profile, compiling, layers);
    const { compiled: own, choice, layers: few, options: compiledWith } = compiled;
    const checked = own.program === null ? own : withReport(own, verifying);
    const one = few === null || checked.program === null ? checked.report.size : sizeOfLayers(few, checked, verifying);
    return {
      checked,
      choice,
      layers: few,
      options: compiledWith,
      size: one && sizeOfRanks(one, checked.report, flags.devices),
    };
  };
  /** Findings of a replica name, and a repair changes, the lists of all ranks: these are recorded from what was lowered. */
  const onAllRanks = (one: Verified): Verified => {
    step(`a replica has findings: verifying all ${flags.devices} ranks, which they name`);
    const compiledWith = one.checked.program === null ? one.options : one.checked.options;
    const own = tryCompile(one.checked, { ...compiledWith, onProgress: step, oneReplica: false });
    const checked = own.program === null ? own : withReport(own, verifying);
    return { ...one, checked, size: checked.report.size };
  };
  let done = await verify(!isWhole, fewer);
  if (done.size === null && done.layers !== null && done.checked.report.ok) done = await verify(true, null);
  if (done.size === null) done = done.layers === null ? onAllRanks(done) : await verify(false, null);
  if (done.layers === null) warnOfAllLayers(built, options, building);
  const { checked, choice } = done;
  step("looking for the statements that are missing");
  const repaired = checked.program === null || checked.report.ok ? null : repairHosts(checked);
  const ofAll = { ...checked.report, size: done.size ?? checked.report.size };
  const report = repaired === null || flags.verbose ? ofAll : { ...ofAll, findings: repaired.findings };
  const linesOf = (missing: AddedStatement): AddedLine => {
    const { ranks, text, ...place } = missing;
    const after = ranks.flatMap((rank) => lineBefore(checked.hosts, containers, rank, place) ?? []);
    return { ranks, statement: text, after: [...new Set(after)] };
  };
  const added = repaired === null ? null : repaired.added.map(linesOf);
  const repair = (repaired?.added ?? []).map((missing) => {
    const { hosts } = checked;
    const call = containers === null ? addedCall(at(hosts, at(missing.ranks, 0)), missing) : null;
    return call === null
      ? addedText(linesOf(missing), flags.devices)
      : `${call}${onRanks(missing.ranks, flags.devices)}`;
  });
  const milliseconds = performance.now() - start;
  const written: string[] = [];
  const program = checked.program === null ? null : checked.reported;
  const replayOf = (order: string): string | null =>
    checked.program === null
      ? null
      : replayCommand({ file, flags, compilation: checked, hasReference: reference !== null }, order);
  const unwritten: Diagnostic[] = [];
  const write = async (flag: string, path: string, text: string): Promise<boolean> => {
    const failure = await writeOrDiagnose(flag, path, text);
    if (failure === null) written.push(path);
    else unwritten.push(failure);
    return failure === null;
  };
  if (flags.report !== undefined) {
    const { hosts } = checked;
    const dump = text === null || linesOfDump === null ? null : { text, lineOf: linesOfDump };
    const data = verifyReport({ title: file, hosts, dump, program, report, repair, replay: replayOf("order.txt") });
    await write("--report", flags.report, (await reportPage(data)).join(""));
  }
  if (flags.repair !== undefined && repaired !== null) {
    await write("--repair", flags.repair, repairedText(repaired));
  }
  const found = report.findings.find(({ interleaving }) => interleaving !== null)?.interleaving ?? null;
  let replay: string | null = null;
  if (flags.counterexample !== undefined && found !== null) {
    if (await write("--interleaving", flags.counterexample, found)) replay = replayOf(flags.counterexample);
  }
  return {
    file,
    flags,
    params,
    options,
    sizes,
    program,
    report,
    added,
    repair,
    choice: choice === null ? null : reasonText(choice),
    missingLayers: done.layers?.missing ?? 0,
    milliseconds,
    written,
    unwritten,
    replay,
  };
}

/** Of fewer ops, two shorter programs take as long as the whole. */
const fewestOps = 1500;

function layersOfLarge(whole: FusionData): FewerLayers | null {
  return whole.ops.length < fewestOps ? null : withFewerLayers(whole);
}

interface Verified {
  readonly checked: Compilation | Unlinked;
  readonly choice: CompiledFile["choice"];
  /** Without those of the choice. */
  readonly options: CompileOptions;
  /** Null if all layers were verified. */
  readonly layers: CompiledLayers | null;
  /** Of all ranks and layers; null if what was verified does not stand for them. */
  readonly size: ProgramSize | null;
}

/** One replica without findings stands for all ranks. */
function sizeOfRanks(size: ProgramSize, { findings }: VerifyReport, devices: number): ProgramSize | null {
  const { ranks, commands, streams, regions } = size;
  if (ranks === devices || ranks === 0) return size;
  const times = devices / ranks;
  const all = { ranks: devices, commands: commands * times, streams: streams * times, regions: regions * times };
  return findings.length === 0 ? all : null;
}

/** Few layers without findings, and one more, stand for all if nothing else tells them apart. */
function sizeOfLayers(
  { few: { compilation }, missing }: CompiledLayers,
  more: Compilation,
  verifying: Verifying,
): ProgramSize | null {
  if (more.report.findings.length > 0) return null;
  const few = withReport(compilation, verifying);
  const isOneMore = (["recorded", "program"] as const).every((each) => hasOneLayerMore(few[each], more[each]));
  if (few.report.findings.length > 0 || !isOneMore) return null;
  const [own, others] = [more.report.size, few.report.size];
  const all = (part: "commands" | "streams" | "regions"): number => further(others[part], own[part], missing);
  return { ...own, commands: all("commands"), streams: all("streams"), regions: all("regions") };
}

interface Verifying {
  readonly lineOf: LineOf | null;
  readonly full: boolean;
  readonly onProgress: ProgressStep;
}

function withReport(compiled: AnyCompilation, { lineOf, ...options }: Verifying): Compilation {
  return verified(compiled, { ...options, lineOf: lineOf ?? printedLines(compiled.hosts) });
}

/** One container if all ranks run the same, else one for each rank. */
function repairedText({ hosts }: HostRepair): string {
  return [...(new Set(hosts).size === 1 ? hosts.slice(0, 1) : hosts)].map((host) => print(host)).join("");
}

async function writeOrDiagnose(flag: string, path: string, text: string): Promise<Diagnostic | null> {
  try {
    await writeFile(path, text);
    return null;
  } catch (error) {
    return {
      code: "file-unwritable",
      message: "a file cannot be written",
      place: { kind: "option", text: flag },
      found: `${path}: ${systemReason(error)}`,
      expected: "the path of a file that can be written",
      help: "choose another path",
    };
  }
}

// The `braid run` that follows an interleaving through the Program that a report is about.

const programNames = ["set", "sizes", "scalar", "reference", "entry", "as"] as const;

interface Replayed {
  readonly file: string;
  readonly flags: Options<"devices" | (typeof programNames)[number]>;
  /** After `verified`. */
  readonly compilation: AnyCompilation;
  /** Whether there is a reference, which `--check` compares with. */
  readonly hasReference: boolean;
}

/**
 * `order` is the file of the interleaving. Interleavings run on the CPU, so what `--on cuda` implies becomes a flag.
 */
function replayCommand({ file, flags, compilation, hasReference }: Replayed, order: string): string {
  const { options, recorded, program, reported } = compilation;
  // A schedule moves commands, so what was found in the recorded list happens without it.
  const isRecorded = reported === recorded && program !== recorded;
  const { copyStream = "inline", ...schedule } = isRecorded ? {} : (options.schedule ?? {});
  const names = [...programNames, ...loweringNames, ...recordingNames, "schedule", "check", "interleaving"] as const;
  const given: GivenOptions<(typeof names)[number]> = {
    ...pickOptions(programNames, flags),
    ...pickOptions([...loweringNames, ...recordingNames], options),
    schedule: copyStream === "inline" ? schedule : { ...schedule, copyStream },
    ...(hasReference ? { check: "rows" } : {}),
    interleaving: order,
  };
  const texts = flagTexts(names, given, memoryModelOf(file));
  // Without the flag, a dump runs on the devices that it names.
  const devices = isDumpFile(file) ? [`${flagOf("devices")} ${flags.devices}`] : flagTexts(["devices"], flags).values();
  return ["braid run", shellQuoted(file), ...devices, ...texts.values()].join(" ");
}

/** A statement that a host program lacks, in words. */
interface AddedLine {
  readonly ranks: readonly number[];
  readonly statement: string;
  /** The lines that it goes after, one for each different program of these ranks; empty if unknown. */
  readonly after: readonly number[];
}

/** `devices`: how many ranks there are; all of them need not be named. */
function addedText({ ranks, statement, after }: AddedLine, devices: number): string {
  const who = ranks.length === devices ? "" : ` of ${ranksText(ranks)}`;
  if (after.length === 0) return `add \`${statement}\`${who}`;
  return `add \`${statement}\` after line${after.length === 1 ? "" : "s"} ${after.join(", ")}${who}, indented alike`;
}

function onRanks(ranks: readonly number[], devices: number): string {
  return ranks.length === devices ? "" : `, on ${ranksText(ranks)}`;
}

function ranksText(ranks: readonly number[]): string {
  return `rank${ranks.length === 1 ? "" : "s"} ${ranks.join(", ")}`;
}
