/**
 * What a wrong mutant shows when it runs: whether some order gives outputs unlike the intact program's, searched
 * without the verifier, and whether the verifier's schedules give one. Outputs are
 * compared as bits, after one run on the machine.
 */
import type { CommandList } from "../../../src/commands/command-list.ts";
import { link } from "../../../src/commands/link/link.ts";
import type { Program } from "../../../src/commands/program.ts";
import { createCpuBackend, parseInterleaving } from "../../../src/cpu.ts";
import { DiagnosticError } from "../../../src/diagnostics/diagnostic.ts";
import { createRandom } from "../../../src/support/random.ts";
import { verify } from "../../../src/verify/verify.ts";

export interface Replay {
  /** Whether an order that was tried gives other outputs. */
  readonly differs: boolean;
  /** Whether a schedule of the verifier does. */
  readonly shown: boolean;
  /** The fault in the verifier's interleavings, or null. */
  readonly complaint: string | null;
}

/** Seeds beside the default order and one order per command that is held back. */
const seeds = [1, 2, 3, 4];

/** Replays the mutant if the verifier finds it wrong; null if it does not, or link refuses it. */
export async function replayMutant(intact: string, lists: readonly CommandList[]): Promise<Replay | null> {
  const program = linked(lists);
  if (program === null) return null;
  const { ok, findings } = verify(program);
  if (ok) return null;
  const schedules = findings.flatMap(({ interleaving }) => interleaving ?? []);
  const replayed = await spoiltBy(program, intact, schedules);
  const differs = replayed !== null || (await spoiltBy(program, intact, orders(program))) !== null;
  const codes = findings.map(({ code }) => code).join(", ");
  return {
    differs,
    shown: replayed !== null,
    complaint:
      differs && replayed === null ? `no output differs under ${schedules.length} schedules of ${codes}` : null,
  };
}

/** The bits of all outputs of all ranks after one run, or the obstacle if it does not complete. */
export async function outputsOf(program: Program, schedule: string | null): Promise<string> {
  const on = createCpuBackend({ interleaving: schedule === null ? { kind: "turns" } : parseInterleaving(schedule) });
  const world = program.ranks.length;
  const group = await on.open({ world, localRanks: program.ranks.map((_, rank) => rank) });
  try {
    const prepared = await group.prepare(program);
    const random = createRandom(7);
    for (const { role, id, bytes } of program.buffers) {
      if (role !== "input") continue;
      const values = Float32Array.from({ length: Math.ceil(bytes / 4) }, () => 0.5 + random.float());
      prepared.write(id, new Uint8Array(values.buffer, 0, bytes));
    }
    await prepared.execute();
    const outputs = program.buffers.filter(({ role }) => role === "output");
    return outputs.map(({ id }) => Buffer.from(prepared.read(id)).toString("base64")).join(" ");
  } catch (error) {
    if (error instanceof DiagnosticError) return `${stopped}${error.diagnostics.map(({ code }) => code).join(", ")}`;
    throw error;
  } finally {
    await group.close();
  }
}

const stopped = "stopped: ";

/** The first schedule under which a completed run has other outputs. */
async function spoiltBy(program: Program, intact: string, schedules: readonly string[]): Promise<string | null> {
  for (const schedule of schedules) {
    const outputs = await outputsOf(program, schedule);
    if (outputs !== intact && !outputs.startsWith(stopped)) return schedule;
  }
  return null;
}

function orders({ ranks }: Program): readonly string[] {
  const held = ranks.flatMap(({ commands }, rank) =>
    commands.flatMap(({ kind }, index) => (marks.has(kind) ? [] : [`hold:${rank}:${index}`])),
  );
  return [...seeds.map((seed) => `seed:${seed}`), ...held];
}

/** Holding these back tells no more than holding back the work around them. */
const marks: ReadonlySet<string> = new Set(["alloc", "free", "recordEvent", "waitEvent"]);

function linked(lists: readonly CommandList[]): Program | null {
  try {
    return link(lists);
  } catch (error) {
    if (error instanceof DiagnosticError) return null;
    throw error;
  }
}
