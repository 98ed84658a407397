/**
 * The host's cost of a run on one fake GPU. Prints the driver's calls of one replayed and of one eager run as JSON,
 * then the result of a traced run and of runs in a row. The fake driver logs every call in the file FAKE_CUDA_LOG.
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import { createCudaBackend } from "../../../../src/cuda.ts";
import { soloRendezvous } from "../../../../src/backends/cuda/world.ts";
import { link } from "../../../../src/commands/link/link.ts";
import { DiagnosticError } from "../../../../src/diagnostics/diagnostic.ts";
import { Fusion } from "../../../../src/ir/api/fusion.ts";
import { add, neg } from "../../../../src/ir/api/ops.ts";
import { lower } from "../../../../src/compile/lower.ts";
import { record } from "../../../../src/compile/record.ts";
import { at } from "../../../../src/support/invariant.ts";
import { buildLists } from "../../../machine/list-builder.ts";

const log = process.env["FAKE_CUDA_LOG"] ?? "";
const calls = (): readonly string[] => readFileSync(log, "utf8").split("\n").filter(Boolean);

/** A whole negation and four chunks of a sum over two worker streams: kernels, events, forks and joins. */
const f = new Fusion();
const x = f.input([4, 8, 8], "float");
const y = add(neg(x), x);
f.output(y);
y.axis(0).parallelize("Stream");
const sizes = new Map<string, number>();
const program = link([record(lower(f, { rank: 0, propagate: false }), { rank: 0, sizes, streams: 2 })]);

/** Every run adds the input to the output. */
const adding = link(
  buildLists(1, (list) => {
    const [input, sum] = [list.input([4]), list.output([4])];
    list.binary(0, "add", sum, input, sum);
  }),
);
const [input, sum] = [at(adding.buffers, 0).id, at(adding.buffers, 1).id];

function countsOf(made: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const name of made) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}

const isLaunch = (command: number): boolean => program.ranks[0]?.commands[command]?.kind === "launch";

for (const graph of ["on", "off"] as const) {
  /** By meeting of the ranks: how many calls the driver had had. */
  const meetings: number[] = [];
  const solo = soloRendezvous();
  const barrier = async (): Promise<void> => void meetings.push(calls().length);
  const on = createCudaBackend({ rendezvous: { ...solo, barrier }, graph });
  const group = await on.open({ world: 1, localRanks: [0] });
  const prepared = await group.prepare(program);
  for (let i = 0; i < 3; i++) await prepared.execute();
  const [before, earlier] = [calls().length, meetings.length];
  const { hostMilliseconds, milliseconds } = await prepared.execute();
  const counts = countsOf(calls().slice(before));
  const alone = meetings.length - earlier;
  const between = calls().length;
  await prepared.execute({ together: true });
  const together = meetings.slice(earlier).map((count) => count - between);
  console.log(
    JSON.stringify({ graph, counts, ordered: (hostMilliseconds ?? Infinity) <= milliseconds, alone, together }),
  );
  const { trace, origins = [] } = await prepared.execute({ trace: true });
  const placed = origins.map(({ rank, at, error }) => [rank, at > 0, error < 100]);
  console.log(JSON.stringify({ launches: trace.filter(({ command }) => isLaunch(command)).length, placed }));
  prepared.release();
  const adder = await group.prepare(adding);
  adder.write(input, new Uint8Array(Float32Array.of(1, 2, 3, 4).buffer));
  adder.write(sum, new Uint8Array(16));
  const refused = await adder
    .execute({ runs: 0 })
    .catch((error: unknown) => (error instanceof DiagnosticError ? error.diagnostics[0]?.code : String(error)));
  // Eager, captured, and more graphs than the driver takes at once.
  const start = calls().length;
  const row = await adder.execute({ runs: 150, deviceTime: true });
  const inRow = countsOf(calls().slice(start));
  const sums = [...new Float32Array(adder.read(sum).buffer)];
  const whole = (row.hostMilliseconds ?? Infinity) <= row.milliseconds && row.deviceMilliseconds !== undefined;
  console.log(JSON.stringify({ refused, inRow, sums, whole }));
  adder.release();
  await group.close();
}
