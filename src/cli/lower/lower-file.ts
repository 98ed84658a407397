/** What `braid lower` prints, as text: from a program file or a dump and flags. */
import { loweringNames, type NamesOf, type Options } from "../../compile/options.ts";
import { styleOf } from "../../compile/options/as.ts";
import { loweringOn, pickOptions } from "../../compile/options/resolve.ts";
import { lower } from "../../compile/lower.ts";
import { reshardingsOfLowered } from "../../compile/reshardings.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import { print, printProgramOfStage } from "../../host/print/print.ts";
import type { LoweringOptions } from "../../passes/options.ts";
import { passNames, type PassObserver } from "../../passes/pipeline.ts";
import { at } from "../../support/invariant.ts";
import { reasonText, suggestion } from "../../support/wording.ts";
import type { CompileGiven } from "../../compile/options/flags-text.ts";
import { profileToChooseWith, withOwnProfile } from "../flags/profile.ts";
import type { ApartBuilding } from "../program/apart/build-apart.ts";
import { buildProgram } from "../program/build-program.ts";
import type { BuiltProgram } from "../program/built-program.ts";
import { inputSizes } from "../../compile/program/input-sizes.ts";
import { modelSizes } from "../program/program-of-model.ts";
import { requireNotLowered } from "../program/dump-file.ts";
import type { ProgressStep } from "../terminal/progress.ts";

export type LowerFlags = Options<NamesOf<"lower">>;

export interface LowerSetting {
  readonly building: ApartBuilding | null;
  readonly step: ProgressStep;
  /** Takes the lines on what moves between devices. */
  readonly note: (lines: readonly string[]) => void;
  /** Whether a person may be watching them. */
  readonly isWatched: boolean;
}

export async function lowerFile(
  file: string,
  asked: LowerFlags,
  given: CompileGiven,
  { building, step, note, isWatched }: LowerSetting,
): Promise<string> {
  const flags = await withOwnProfile(asked, given);
  const options = pickOptions(loweringNames, given);
  const { devices, rank, json } = flags;
  requireOnePrinted(flags);
  if (flags.printAfter !== undefined) requirePass(flags.printAfter);
  requireRank(rank, devices);
  requireNotLowered(file, options);
  const profile = await profileToChooseWith(flags);
  const { source, signature, model, params } = await buildProgram(file, flags, options, building);
  if (flags.printReshardings) {
    const { reshardingsText } = await import("./reshardings-text.ts");
    return reshardingsText(file, { source }, options, flags);
  }
  const described = { file, devices, rank, params, options };
  // Commands and the choice of lowering options depend on sizes. A host program alone needs no sizes.
  const noteMoves = async (lowering: Partial<LoweringOptions>): Promise<void> => {
    if (!("data" in source) || json) return;
    const moved = reshardingsOfLowered(source, { ...lowering, sizes: modelSizes(model, flags.sizes) });
    if (!isWatched && moved.every(({ hint }) => hint === undefined)) return;
    // With the table's library, which takes time to load.
    const { communicationNotes } = await import("./reshardings-text.ts");
    note(communicationNotes(moved, isWatched));
  };
  if (!flags.printLists && profile === null) {
    const lowering = loweringOn(options, flags.on);
    const text = hostText(source, lowering, flags, described);
    await noteMoves(lowering);
    return text;
  }
  const { compileFile } = await import("../program/compile-file.ts");
  const { loweringOf, requireLinked } = await import("../../compile/compile.ts");
  const { compiled, choice } = await compileFile(
    file,
    source,
    flags,
    given,
    inputSizes(signature, modelSizes(model, flags.sizes)),
    profile,
    { onProgress: step },
  );
  const compilation = requireLinked(compiled);
  await noteMoves(loweringOf(compilation.options));
  const chosen = { ...described, scheduleChoice: choice === null ? undefined : reasonText(choice) };
  if (!flags.printLists) return hostText(source, loweringOf(compilation.options), flags, chosen);
  const { printProgram } = await import("../../commands/print-program.ts");
  const lists = printProgram(compilation.program, { ranks: [rank] });
  return json ? jsonText({ ...chosen, lists }) : lists;
}

/** `described`: entries of the JSON document besides the host program. */
function hostText(
  source: BuiltProgram["source"],
  options: Partial<LoweringOptions>,
  { rank, as, printAfter, json }: LowerFlags,
  described: object,
): string {
  const style = styleOf(as);
  const passes: PassText[] = [];
  const onPass: PassObserver = ({ pass, changed, program }) => {
    if (printAfter !== "all" && printAfter !== pass) return;
    passes.push({ pass, changed, text: printProgramOfStage(program, { style }) });
  };
  const host = "data" in source ? lower(source, { ...options, rank, onPass }) : at(source, rank);
  requireRan(printAfter, passes);
  const text = print(host, { style });
  if (json) return jsonText({ ...described, style, passes, text, hostProgram: host });
  return printAfter === undefined ? text : passes.map(passSection).join("");
}

function jsonText(document: object): string {
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

interface PassText {
  readonly pass: string;
  readonly changed: boolean;
  readonly text: string;
}

function passSection({ pass, changed, text }: PassText): string {
  return `// after ${pass}${changed ? "" : " (unchanged)"}\n${text.trim()}\n\n`;
}

function requireRank(rank: number, devices: number): void {
  if (rank < devices) return;
  fail("option-value", `there is no rank ${rank} among ${devices} ${devices === 1 ? "device" : "devices"}`, {
    place: { kind: "option", text: "--rank" },
    found: String(rank),
    expected: `0 to ${devices - 1}`,
    help: `pass a smaller rank, or --devices ${rank + 1} or more`,
  });
}

/** Fails for a dump, which is lowered already. */
function requireRan(printAfter: string | undefined, ran: readonly PassText[]): void {
  if (printAfter === undefined || ran.length > 0) return;
  fail("option-value", printAfter === "all" ? "no pass ran" : `pass ${printAfter} did not run`, {
    place: { kind: "option", text: "--print passes" },
    found: printAfter,
    expected: "a program file that builds a Fusion",
    help: "leave --print out: a host program is what passes make",
  });
}

/** Each stands in place of the host program. */
function requireOnePrinted({ printAfter, printLists, printReshardings }: LowerFlags): void {
  const printed = [
    ...(printAfter === undefined ? [] : ["passes"]),
    ...(printReshardings ? ["reshardings"] : []),
    ...(printLists ? ["lists"] : []),
  ];
  if (printed.length < 2) return;
  fail("option-value", "braid lower prints one thing", {
    place: { kind: "option", text: "--print" },
    found: printed.join(","),
    expected: "passes, reshardings or lists, or no --print for the host program",
    help: `write --print ${printed[0] ?? ""}`,
  });
}

function requirePass(name: string): void {
  const known = ["all", ...passNames];
  if (known.includes(name)) return;
  fail("option-value", `there is no pass ${name}`, {
    place: { kind: "option", text: "--print passes" },
    found: name,
    expected: `one of ${known.join(", ")}`,
    help: suggestion(name, known, "name one of these passes, or all"),
  });
}
