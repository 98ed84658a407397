/**
 * Ten thousand runs, of which CI does a part: every example on 8 ranks and 8 streams, on 1 and 2 workers that pause at random, each run
 * with the bits of the first; then a small program, with memory and handles before and after. Says what it found; exit status 1
 * where bits differ or memory grows.
 *
 *     npx jiti bench/soak.ts [RUNS]
 */
import { createHash } from "node:crypto";
import type { Prepared, Program } from "braid";
import { openThreadedGroup } from "../src/backends/cpu/threads/threaded-group.ts";
import { exampleFiles, exampleProgram } from "../test/support/example-program.ts";

const runs = Number(process.argv[2] ?? 10_000);
const ranks = 8;
const timeout = 60;

function fillInputs({ buffers }: Program, prepared: Prepared): void {
  for (const { id, role, bytes } of buffers) {
    if (role !== "input") continue;
    const values = Float32Array.from({ length: bytes / 4 }, (_, i) => ((i * 7 + id) % 17) - 8);
    prepared.write(id, new Uint8Array(values.buffer));
  }
}

function outputsOf({ buffers }: Program, prepared: Prepared): string {
  const hash = createHash("sha256");
  for (const { id, role } of buffers) if (role === "output") hash.update(prepared.read(id));
  return hash.digest("hex");
}

const each = Math.ceil(runs / (2 * exampleFiles.length));
let failed = false;
for (const workers of [1, 2]) {
  const group = openThreadedGroup({ workers, jitter: 17 });
  for (const name of exampleFiles) {
    const program = await exampleProgram(name, ranks, 8);
    const prepared = await group.prepare(program);
    fillInputs(program, prepared);
    const seen = new Set<string>();
    for (let run = 0; run < each; run++) {
      await prepared.execute({ timeout });
      seen.add(outputsOf(program, prepared));
    }
    prepared.release();
    failed ||= seen.size !== 1;
    console.log(`${name}: ${each} runs on ${workers} worker(s), ${seen.size} result(s)`);
  }
  await group.close();
}

const group = openThreadedGroup({ workers: 2 });
const program = await exampleProgram("allgather.ts", ranks, 8);
const prepared = await group.prepare(program);
fillInputs(program, prepared);
const megabytes = (): number => process.memoryUsage().rss / 2 ** 20;
const handles = (): number => process.getActiveResourcesInfo().length;
for (let run = 0; run < Math.ceil(runs / 10); run++) await prepared.execute({ timeout });
const before = { memory: megabytes(), handles: handles() };
for (let run = 0; run < runs; run++) await prepared.execute({ timeout });
const after = { memory: megabytes(), handles: handles() };
await group.close();
failed ||= after.memory > before.memory + 64 || after.handles > before.handles + 2;
console.log(
  `${runs} runs of allgather.ts: ${before.memory.toFixed(0)} to ${after.memory.toFixed(0)} MiB, ${before.handles} to ${after.handles} handles`,
);
process.exitCode = failed ? 1 : 0;
