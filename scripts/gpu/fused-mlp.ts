/**
 * A sequence-parallel MLP over all GPUs, as one loop from the gather to the residual and as two loops with the
 * activation between them: times and exposed communication, medians of 15 runs of the slowest rank. All forms take
 * turns. `--out` writes all figures, `--traces` the commands of one run per form.
 *
 *     sh braid-offline/braid --script scripts/gpu/fused-mlp.ts 2 --rows 8192 --hidden 8192 --ffn 28672 --out mlp.json
 */
import { writeFileSync } from "node:fs";
import process from "node:process";
import { parseArgs } from "node:util";
import type { Group, Prepared, RunReport } from "../../src/backends/backend.ts";
import { isWork } from "../../src/commands/command.ts";
import type { Program } from "../../src/commands/program.ts";
import { compile } from "../../src/compile/compile.ts";
import { gatherReports } from "../../src/cli/run/gather.ts";
import { createCudaBackend } from "../../src/cuda.ts";
import type { World } from "../../src/launch/join-world.ts";
import { at } from "../../src/support/invariant.ts";
import { overlapOf } from "../../src/trace/overlap.ts";
import { asRanks } from "./as-ranks.ts";
import { mlp, type MlpShape, schedules } from "./mlp-forms.ts";
import { noise, writeShards } from "./noise.ts";
import { median } from "./rows.ts";
import { versions } from "./versions.ts";

const runs = 15;
/** Runs before each one that counts, so that no form runs with what another left in caches or queues. */
const warmUp = 2;

interface Contender {
  readonly name: string;
  readonly program: Program;
  readonly prepared: Prepared;
  readonly figures: {
    readonly milliseconds: number[];
    readonly exposed: number[];
    readonly communication: number[];
  };
  trace: readonly string[];
}

async function prepare(world: World, group: Group, shape: MlpShape): Promise<readonly Contender[]> {
  const contenders: Contender[] = [];
  let whole: ReturnType<typeof noise> | null = null;
  for (const chunks of [4, 8]) {
    for (const [label, options] of Object.entries(schedules)) {
      for (const fused of [true, false]) {
        const f = mlp(shape, world.worldSize, chunks, fused);
        const { program, signature } = compile(f, { ...options(chunks), devices: world.worldSize, on: "cuda" });
        const prepared = await group.prepare(program);
        writeShards(f, signature.tensors, program, prepared, world.rank, (whole ??= noise(f)));
        const figures = { milliseconds: [], exposed: [], communication: [] };
        const name = `${fused ? "one loop" : "two loops"}, ${chunks} chunks, ${label}`;
        contenders.push({ name, program, prepared, figures, trace: [] });
      }
    }
  }
  return contenders;
}

/** Runs in turns: clocks, temperature and other load then affect all forms equally. */
async function runInTurns(world: World, contenders: readonly Contender[]): Promise<void> {
  for (const trace of [false, true]) {
    for (let run = 0; run < runs; run++) {
      for (let i = 0; i < contenders.length; i++) {
        const contender = at(contenders, (i + run) % contenders.length);
        for (let j = 0; j <= warmUp; j++) {
          await world.barrier();
          const own = await contender.prepared.execute({ trace });
          if (j === warmUp) note(contender, at(await gatherReports(world, [own]), 0));
        }
      }
    }
  }
}

/** The report is that of all ranks, on one time axis: waiting for a peer is not communication. */
function note(contender: Contender, { milliseconds, trace }: RunReport): void {
  const { figures, program } = contender;
  if (trace.length === 0) {
    figures.milliseconds.push(milliseconds);
    return;
  }
  const overlap = overlapOf(program, trace);
  figures.exposed.push(Math.max(...overlap.map(({ communication, hidden }) => communication - hidden)));
  figures.communication.push(Math.max(...overlap.map(({ communication }) => communication)));
  contender.trace = trace.flatMap(({ rank, stream, command, start, end }) => {
    const { kind, ...rest } = at(at(program.ranks, rank).commands, command);
    if (!isWork(kind)) return [];
    const what = "kernel" in rest ? at(program.kernels, rest.kernel).kind : kind;
    return [`${start.toFixed(4)} ${end.toFixed(4)} rank ${rank} stream ${stream} ${what}`];
  });
}

/** The words of this rank's output. */
function outputOf({ program, prepared }: Contender, rank: number): Uint16Array {
  const output = program.buffers.find(({ role, rank: owner }) => role === "output" && owner === rank);
  if (output === undefined) throw new Error("a rank has an output");
  return new Uint16Array(prepared.read(output.id).slice().buffer);
}

async function runRank(world: World, values: readonly string[]): Promise<number> {
  const number = { type: "string" } as const;
  const { values: given } = parseArgs({
    args: [...values],
    options: { rows: number, hidden: number, ffn: number, out: { type: "string" }, traces: { type: "string" } },
  });
  const { rank, localRank, worldSize } = world;
  const shape = {
    rows: Number(given.rows ?? 8192),
    hidden: Number(given.hidden ?? 8192),
    ffn: Number(given.ffn ?? 28_672),
  };
  const group = await createCudaBackend({ rendezvous: world, graph: "on" }).open({
    world: worldSize,
    localRanks: [rank],
  });
  const contenders = await prepare(world, group, shape);
  await runInTurns(world, contenders);
  const say = (text: string): void => {
    if (rank === 0) console.log(text);
  };
  say(`rows ${shape.rows}, hidden ${shape.hidden}, ffn ${shape.ffn} over ${worldSize} GPUs`);
  say(`${"form".padEnd(50)} ms (median, least, most)  exposed ms (the same)     communication ms`);
  const found = [];
  const first = outputOf(at(contenders, 0), rank);
  for (const contender of contenders) {
    const { name, figures, trace, prepared } = contender;
    const own = outputOf(contender, rank);
    const differing = own.reduce((count, value, i) => count + (value === first[i] ? 0 : 1), 0);
    const { milliseconds, exposed, communication } = figures;
    found.push({ name, ...figures });
    say(
      `${name.padEnd(50)} ${spread(milliseconds).padEnd(25)} ${spread(exposed).padEnd(25)} ${median(communication).toFixed(3)}  ${differing} elements differ from the first`,
    );
    if (given.traces !== undefined && rank === 0) {
      writeFileSync(given.traces, `${name}\n${trace.join("\n")}\n\n`, { flag: "a" });
    }
    prepared.release();
  }
  await group.close();
  if (given.out !== undefined && rank === 0) {
    const date = new Date().toISOString().slice(0, 10);
    const document = { date, devices: worldSize, versions: versions(rank, localRank), shape, runs, found };
    writeFileSync(given.out, `${JSON.stringify(document, undefined, 1)}\n`);
  }
  return 0;
}

function spread(values: readonly number[]): string {
  return [median(values), Math.min(...values), Math.max(...values)].map((each) => each.toFixed(3)).join(" ");
}

process.exitCode = await asRanks(import.meta.url, 120_000, runRank);
