/** The trace of `explain --trace`: read, and checked to be that of the explained program. */
import { readRegularText } from "../../backends/regular-file.ts";
import type { Program } from "../../commands/program.ts";
import { fail } from "../../diagnostics/diagnostic.ts";
import type { MeasuredRun } from "../../explain/explain.ts";
import { optionsThatDiffer } from "../../launch/checked-backend.ts";
import { programHash } from "../../launch/exchange.ts";
import { options as schema } from "../../compile/options.ts";
import type { Schedule } from "../../compile/options/schedule.ts";
import { at } from "../../support/invariant.ts";
import { systemReason, counted } from "../../support/wording.ts";
import { type ReadTrace, readChromeTrace } from "../../trace/chrome/read-trace.ts";

/** Throws `file-unreadable` and `trace-invalid`. */
export async function readTrace(file: string): Promise<ReadTrace> {
  const text = await readRegularText(file).catch((error: unknown) =>
    fail("file-unreadable", "the trace cannot be read", {
      place: { kind: "option", text: `--trace ${file}` },
      found: systemReason(error),
      expected: "a file that braid run --trace wrote",
      help: "check the name, or trace a run: braid run FILE --trace trace.json",
    }),
  );
  return readChromeTrace(text, file);
}

/** How the traced run was scheduled. */
export function scheduleOf({ run: { options } }: ReadTrace): Schedule {
  const text = options["--schedule"];
  if (text === undefined) return options["--profile"] === undefined ? "as-written" : "auto";
  return schema.schedule.kind.read(text) ?? "as-written";
}

/** `options`: those of this command line, by flag. Throws `trace-mismatch`. */
export function measuredRun(
  program: Program,
  { run, spans }: ReadTrace,
  options: Readonly<Record<string, string>>,
): MeasuredRun {
  const hash = programHash(program);
  if (hash !== run.program) {
    const named = ({ devices, on, hash: own }: { devices: number; on: string; hash: string }): string =>
      `program ${own}, on ${counted(devices, "device")} (${on})`;
    const differing = optionsThatDiffer(options, run.options, "here");
    fail("trace-mismatch", "the trace shows a run of another program", {
      place: { kind: "option", text: "--trace" },
      found: named({ ...run, hash: run.program }),
      expected: named({ devices: program.ranks.length, on: options["--on"] ?? run.on, hash }),
      help:
        differing.length > 0
          ? "give explain the options of the run that was traced"
          : "the options are the same: trace the run again, after the last change of the program and of Braid",
      notes: differing,
    });
  }
  const trace = spans.map((span) => ({
    ...span,
    stream: at(at(program.ranks, span.rank).commands, span.command).stream,
  }));
  return { trace, milliseconds: run.milliseconds };
}
