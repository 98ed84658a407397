/** What changes would gain: the rows that `braid explain` prints as "to change". */
import { tryCompile } from "../../src/compile/compile.ts";
import { type OptionName, optionNames, optionRow } from "../../src/compile/options.ts";
import { inputSizes } from "../../src/compile/program/input-sizes.ts";
import { alternatives, type ChangedOptions } from "../../src/explain/alternatives.ts";
import { gainText, isWorthIt } from "../../src/explain/changes.ts";
import { explainRun } from "../../src/explain/explain-run.ts";
import { simulate } from "../../src/simulate/simulate.ts";
import { load, machineOf } from "./analyse.ts";
import type { CompileRequest } from "./messages.ts";
import type { OtherOptions } from "./parts.ts";
import { compileOptionsOf, readOptions } from "./read-options.ts";

/** The fastest first; of the host programs without the user's edits. Throws diagnostics. */
export function otherOptions(request: CompileRequest): readonly OtherOptions[] {
  const given = readOptions(request.options, request.source.kind === "dump");
  const { source, hosts, signature } = load(request.source, request.devices, given);
  const sizes = inputSizes(signature, given.sizes ?? new Map());
  const options = { ...compileOptionsOf(given), devices: hosts.length, sizes, verify: "off" } as const;
  const compilation = tryCompile({ signature, hosts }, options);
  if (compilation.program === null) return [];
  const { program } = compilation;
  const machine = machineOf(request.profile, given);
  const run = explainRun({ program, ...simulate(program, machine, { graph: true }) }, machine, {
    serial: null,
    graph: true,
  });
  const explained = { source, compilation, run, refusals: [], mostEdited: 0, chosen: null };
  return alternatives(explained, { ...options, graph: true }, machine).flatMap((found) => {
    const { change, options: changed, milliseconds } = found;
    if (changed === null || milliseconds === null || !isWorthIt(found, run.milliseconds)) return [];
    return [{ change, options: textsOf(changed), milliseconds, gain: gainText(milliseconds, run.milliseconds) }];
  });
}

/** A default is an empty text, which clears the option. */
function textsOf({ schedule, ...others }: ChangedOptions): OtherOptions["options"] {
  const values: Readonly<Record<string, unknown>> = { ...others, ...schedule };
  const textOf = (name: OptionName): string => (values[name] === optionRow(name).default ? "" : String(values[name]));
  return Object.fromEntries(
    optionNames.flatMap((name) => (values[name] === undefined ? [] : [[name, textOf(name)] as const])),
  );
}
