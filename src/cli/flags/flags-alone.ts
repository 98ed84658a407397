/** Flags that may stand alone. Their values follow an equals sign, so that a file after such a flag stays a file. */
import type { Command } from "commander";

/** The arguments with the value that each flag alone stands for. */
export function withValues(args: readonly string[], commands: readonly Command[]): readonly string[] {
  const alone = new Map(
    commands.flatMap(({ options }) =>
      options.flatMap(({ long, optional, presetArg }) =>
        optional && typeof long === "string" ? [[long, `${long}=${String(presetArg)}`] as const] : [],
      ),
    ),
  );
  return args.map((arg) => alone.get(arg) ?? arg);
}
