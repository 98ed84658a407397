/**
 * A process that runs a Program on worker threads, and stops one of them at a random moment. Prints a line about what
 * is wrong: the run that fails must name the worker, the next run must have the right result, and the process must end
 * by itself.
 */
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import type { Worker } from "node:worker_threads";
import { DiagnosticError, link } from "@braid-compiler/braid";
import { openThreadedGroup } from "../../src/backends/cpu/threads/threaded-group.ts";
import { buildLists } from "../machine/list-builder.ts";

const [milliseconds = "0", victim = "0"] = process.argv.slice(2);

const threads: Worker[] = [];
process.on("worker", (worker) => threads.push(worker));

/** Large enough for parts, with two streams and both ranks' buffers. */
const elements = 2 ** 18;
const program = link(
  buildLists(2, (list) => {
    const [input, between, output] = [list.input([elements]), list.temporary([elements]), list.output([elements])];
    const worker = list.stream("worker 0");
    list.synchronize(worker, 0);
    // Long enough that the strike comes during a run rather than between two.
    for (let i = 0; i < 50; i++) {
      list.binary(worker, "add", input, input, between);
      list.synchronize(0, worker);
      list.copy(0, between, output);
      list.synchronize(worker, 0);
    }
  }),
);

const group = openThreadedGroup({ workers: 2 });
const prepared = await group.prepare(program);
const inputs = program.buffers.filter(({ role }) => role === "input");
for (const { id } of inputs) prepared.write(id, new Uint8Array(new Float32Array(elements).fill(1.5).buffer));

const isRight = (): boolean =>
  program.buffers.every(
    ({ role, id }) => role !== "output" || new Float32Array(prepared.read(id).buffer).every((value) => value === 3),
  );

let [failed, over] = [0, false];
const strike = sleep(Number(milliseconds)).then(async () => {
  await threads[Number(victim)]?.terminate();
  await sleep(20);
  over = true;
});
while (!over) {
  try {
    await prepared.execute({ timeout: 5 });
  } catch (error) {
    failed++;
    const codes = error instanceof DiagnosticError ? error.diagnostics.map(({ code }) => code).join() : String(error);
    if (codes !== "worker-died") console.log(`failed by ${codes}`);
  }
  // Runs in a row keep this thread from its event loop, and so from the strike.
  await new Promise((resolve) => setImmediate(resolve));
}
await strike;
await prepared.execute({ timeout: 5 });
if (!isRight()) console.log("the run after the strike has another result");
if (failed > 1) console.log(`${failed} runs failed`);
await group.close();
