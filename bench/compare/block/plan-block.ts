/** Compiles Braid's implementations of a block, with the given options or with those that simulation chooses. */
import {
  type AnyCompilation,
  compile,
  type CompileOptions,
  requireVerified,
  verified,
} from "../../../src/compile/compile.ts";
import { scheduleNames } from "../../../src/compile/options.ts";
import { pickOptions } from "../../../src/compile/options/resolve.ts";
import { DiagnosticError, fail } from "../../../src/diagnostics/diagnostic.ts";
import { at, unreachable } from "../../../src/support/invariant.ts";
import { serial } from "../../../src/tune/choose/candidates.ts";
import { choose } from "../../../src/tune/choose/choose.ts";
import { requireNoSchedule } from "../../../src/tune/choose/consider.ts";
import { predictedTimeText } from "../../../src/tune/choose/decide.ts";
import type { BraidOptions } from "../braid/braid-options.ts";
import { noProfile } from "../braid/plan-own.ts";
import type { OwnImplementation, Setting } from "../workload.ts";
import type { BlockFusion } from "./block-builder.ts";
import { type Chunked, communicationOfBlock, computeOfBlock, unchunked, wholeBlock } from "./block-fusion.ts";
import type { BlockProblem } from "./block-problem.ts";

export interface PlannedBlock {
  readonly block: BlockFusion;
  readonly compilation: AnyCompilation;
  readonly reason: string | null;
}

/** Throws what lowering, recording, linking and the verifier throw. */
export function planBlock(implementation: OwnImplementation, problem: BlockProblem, setting: Setting): PlannedBlock {
  const planned = unverified(implementation, problem, setting);
  return { ...planned, compilation: requireVerified(verified(planned.compilation, { notes: false })) };
}

function unverified({ name, options }: OwnImplementation, problem: BlockProblem, setting: Setting): PlannedBlock {
  const { devices } = problem;
  const { on } = setting;
  const common = { devices, on, verify: "off", ...pickOptions(["protocol", "interStreamSync"], options) } as const;
  const given = (block: BlockFusion, own: Partial<CompileOptions>): PlannedBlock => ({
    block,
    compilation: compile(block.fusion, { ...common, ...own }),
    reason: null,
  });
  const schedule = pickOptions(scheduleNames, options);
  switch (name) {
    case "compute-only":
      return given(computeOfBlock(problem), { streams: 1 });
    case "communication-only":
      return given(communicationOfBlock(problem), { backend: options.backend ?? "cuda", schedule });
    case "serial": {
      const { lowering } = serial;
      const backend = options.backend ?? lowering.backend ?? "nccl";
      return given(wholeBlock(problem, unchunked), { ...lowering, backend, streams: 1, schedule });
    }
    case "braid": {
      requireBlockOptions(options);
      if (options.scheduleChoice === "auto") return chosen(options, problem, setting);
      const { backend = "cuda", chunks = devices } = options;
      return given(wholeBlock(problem, { chunks, all: problem.cut === "tp-sp" }), {
        ...pickOptions(["streams"], options),
        backend,
        schedule,
      });
    }
    default:
      return unreachable(name);
  }
}

/** Each is the fastest for some size and cut. */
const chunkings: readonly Chunked[] = [
  unchunked,
  ...[2, 4].flatMap((chunks) => [false, true].map((all) => ({ chunks, all }))),
];

/** With the cut tp: devices share the tokens between the linears. */
const overDevices: Chunked = { ...unchunked, overDevices: true };

/** Chooses what is in chunks and in how many, unless their number is given, and the schedule, each region by itself. */
function chosen(options: BraidOptions, problem: BlockProblem, { on, profile }: Setting): PlannedBlock {
  if (profile === null) return noProfile();
  requireNoSchedule({ ...pickOptions(["streams"], options), schedule: pickOptions(scheduleNames, options) });
  const { devices } = problem;
  const lowering = pickOptions(["protocol", "interStreamSync", "backend"], options);
  const graph = options.graph !== "off";
  const errors: DiagnosticError[] = [];
  const { chunks: given } = options;
  const considered =
    given === undefined
      ? [...chunkings, ...(problem.cut === "tp" ? [overDevices] : [])]
      : [false, true].map((all) => ({ chunks: given, all }));
  const found = considered.flatMap((chunked) => {
    try {
      const block = wholeBlock(problem, chunked);
      const choice = choose(block.fusion, { ...lowering, devices, on, graph, verify: "off" }, profile);
      return [{ chunked, block, choice }];
    } catch (error) {
      // The tokens do not divide evenly, or the chunks do not support the options.
      if (!(error instanceof DiagnosticError)) throw error;
      errors.push(error);
      return [];
    }
  });
  const [firstError] = errors;
  if (found.length === 0 && firstError !== undefined) throw firstError;
  const surely = ({ choice }: (typeof found)[number]): number => choice.milliseconds * (1 + choice.margin);
  const ordered = found.toSorted((a, b) => surely(a) - surely(b));
  const { chunked, block, choice } = at(ordered, 0);
  const others = ordered
    .slice(1)
    .map((each) => `${chunkedText(each.chunked)}: ${predictedTimeText(each.choice.milliseconds)}`);
  const compared = others.length === 0 ? "" : ` (${others.join(", ")})`;
  const reason = `chunks ${chunkedText(chunked)}${compared}, ${choice.reason}`;
  return { block, compilation: choice.compilation, reason };
}

function chunkedText({ chunks, all, overDevices }: Chunked): string {
  if (overDevices === true) return "of tokens over devices";
  return all ? `${chunks} from the start` : String(chunks);
}

function requireBlockOptions(options: BraidOptions): void {
  const given = (["form", "outputs"] as const).find((name) => options[name] !== undefined);
  if (given === undefined) return;
  fail({
    code: "bad-option",
    message: `a block has no option ${given}`,
    place: { kind: "option", text: given },
    found: `${given}=${options[given]}`,
    expected: "chunks, backend, protocol, streams, and options of the schedule",
    help: `leave ${given} out; chunks are those of the tokens`,
  });
}
