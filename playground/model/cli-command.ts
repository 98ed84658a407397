/** The command line that does what the page shows. */
import { flagOf, optionNames, optionRow } from "../../src/compile/options.ts";
import { usualDevices } from "./inputs.ts";
import type { State } from "./state.ts";

export type ShownCommand = "lower" | "run" | "verify" | "explain";

/** Options that the command does not take are left out, and parameters that the program does not have: `known`. */
export function cliCommand(command: ShownCommand, state: State, known: readonly string[]): string {
  const { document, options, params, profile, customProfile } = state;
  const given: Readonly<Record<string, string>> =
    document.kind === "dump" ? options : { devices: String(usualDevices), ...options };
  const words = ["npx", "braid", command, quoted(document.name)];
  const scheduled: string[] = [];
  for (const name of optionNames) {
    const text = given[name];
    const row = optionRow(name);
    const isScheduled = row.within === "schedule";
    if (text === undefined || !(isScheduled || row.commands.includes(command))) continue;
    const usual = row.defaultOf?.[command] ?? row.default;
    if (text === String(usual)) continue;
    if (isScheduled) scheduled.push(row.kind.argument === null && text === "true" ? name : `${name}=${text}`);
    else words.push(flagOf(name), quoted(text));
  }
  if (scheduled.length > 0) words.push("--schedule", quoted(scheduled.join(",")));
  for (const [name, text] of Object.entries(params))
    if (known.includes(name)) words.push("--set", quoted(`${name}=${text}`));
  if (command === "explain") words.push("--profile", customProfile === null ? profile : `${profile}.json`);
  return words.join(" ");
}

function quoted(text: string): string {
  return /^[\w./:=,+-]+$/u.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
