/**
 * Times the forms of a problem over all GPUs: reshardings by one exchange and by collectives, an MLP on a mesh of 2 x 2,
 * and a sequence-parallel MLP as one loop and as two. Medians of 15 runs of the slowest rank. All forms of a problem
 * take turns, so that clocks, temperature and other load affect them equally, and their results are compared. Exposed
 * communication is from traced runs, which no graph launches. With `--profile`, also predictions and chosen schedules.
 *
 *     sh braid-offline/braid --script scripts/gpu/form-times.ts 4 --profile profiles/4xH200.json --out forms.json
 *     ... form-times.ts 4 --only "MLP.*half"                     the problems whose names match
 *     ... form-times.ts 2 --only loops --traces traces.txt       the commands of one run per form, too
 */
import { readFileSync, writeFileSync } from "node:fs";
import { median, spread } from "../../bench/harness/figures.ts";
import { openGroup } from "../../bench/harness/gpu-groups.ts";
import { onGpus, type RankWork } from "../../bench/harness/on-gpus.ts";
import { slowest } from "../../bench/harness/rows.ts";
import type { Group, Prepared, RunReport } from "../../src/backends/backend.ts";
import { gatherReports } from "../../src/cli/run/gather.ts";
import { isWork } from "../../src/commands/command.ts";
import type { World } from "../../src/launch/join-world.ts";
import { parseProfile } from "../../src/simulate/parse-profile.ts";
import { at } from "../../src/support/invariant.ts";
import { overlapOf } from "../../src/trace/overlap.ts";
import type { Form, Problem } from "./form.ts";
import { loopProblems } from "./mlp-forms.ts";
import { routeProblems } from "./route-forms.ts";

const runs = 15;
/** Runs before each one that counts, so that no form runs with what another left in caches or queues. */
const warmUp = 2;

interface Contender extends Form {
  readonly prepared: Prepared;
  /** Milliseconds of each run. */
  readonly figures: { readonly milliseconds: number[]; readonly exposed: number[]; readonly communication: number[] };
  trace: readonly string[];
}

async function prepare(group: Group, forms: readonly Form[], rank: number): Promise<readonly Contender[]> {
  const contenders: Contender[] = [];
  for (const form of forms) {
    const prepared = await group.prepare(form.program);
    form.write(prepared, rank);
    const figures = { milliseconds: [], exposed: [], communication: [] };
    contenders.push({ ...form, prepared, figures, trace: [] });
  }
  return contenders;
}

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

/** The greatest share on any rank of words in which a form's output is not that of the first form. */
async function differences(world: World, contenders: readonly Contender[]): Promise<readonly number[]> {
  const outputs = contenders.map(({ program, prepared }) => {
    const output = program.buffers.find(({ role, rank }) => role === "output" && rank === world.rank);
    if (output === undefined) throw new Error("a rank has an output");
    return prepared.read(output.id).slice();
  });
  const first = at(outputs, 0);
  const shares = outputs.map((own) => {
    if (Buffer.compare(own, first) === 0) return 0;
    const expected = new Uint16Array(first.buffer);
    const words = new Uint16Array(own.buffer);
    return words.reduce((count, word, i) => count + (word === expected[i] ? 0 : 1), 0) / words.length;
  });
  return slowest(world, shares);
}

async function timeForms({ world, flags, write }: RankWork): Promise<number> {
  const { profile: file, only = "", traces } = flags;
  const profile = file === undefined ? null : parseProfile(readFileSync(file, "utf8"), file);
  const group = await openGroup(world, { graph: "on" });
  const isWanted = ({ name, devices }: Problem): boolean =>
    (devices ?? world.worldSize) === world.worldSize && new RegExp(only).test(name);
  const found: object[] = [];
  for (const problem of [...routeProblems, ...loopProblems].filter(isWanted)) {
    const contenders = await prepare(group, problem.forms(profile, world.worldSize), world.rank);
    await runInTurns(world, contenders);
    const differing = await differences(world, contenders);
    if (world.rank === 0) console.log(`${problem.name}\n  ms; exposed ms; communication ms`);
    for (const [i, { name, figures, predicted, trace, prepared }] of contenders.entries()) {
      prepared.release();
      const { milliseconds, exposed, communication } = figures;
      found.push({ problem: problem.name, name, predicted, differing: differing[i], ...figures });
      if (world.rank > 0) continue;
      const guess = predicted === null ? "" : `predicted ${predicted.toFixed(3)}`;
      const same = differing[i] === 0 ? "" : `${(100 * (differing[i] ?? NaN)).toFixed(2)} % of words differ`;
      const times = `${spread(milliseconds)}; ${spread(exposed)}; ${median(communication).toFixed(3)}`;
      console.log(`  ${name.padEnd(50)} ${times} ${guess} ${same}`.trimEnd());
      if (traces !== undefined) writeFileSync(traces, `${name}\n${trace.join("\n")}\n\n`, { flag: "a" });
    }
  }
  await group.close();
  write({ runs, found });
  return 0;
}

await onGpus({ url: import.meta.url, timeout: 120_000, flags: ["profile", "only", "traces"], rank: timeForms });
