/**
 * What a run costs the host, on one fake GPU: prints the driver's calls of one replayed and of one eager run as JSON, each followed by what a traced run tells. The fake
 * driver names every call in the file FAKE_CUDA_LOG.
 */
import { readFileSync } from "node:fs";
import process from "node:process";
import { createCudaBackend } from "../../../src/cuda.ts";
import { soloRendezvous } from "../../../src/backends/cuda/world.ts";
import { link } from "../../../src/commands/link.ts";
import { Fusion } from "../../../src/ir/api/fusion.ts";
import { add, neg } from "../../../src/ir/api/ops.ts";
import { lower } from "../../../src/passes/lower.ts";
import { record } from "../../../src/record/record.ts";

const log = process.env["FAKE_CUDA_LOG"] ?? "";
const calls = (): readonly string[] => readFileSync(log, "utf8").split("\n").filter(Boolean);

/** A whole negation and four chunks of a sum over two worker streams: kernels, events, forks and joins. */
const f = new Fusion();
const x = f.input([4, 8, 8], "float");
const y = add(neg(x), x);
f.output(y);
y.axis(0).parallelize("Stream");
const sizes = new Map<string, number>();
const program = link([record(lower(f, { rank: 0 }), { rank: 0, sizes, numberOfStreams: 2 })]);

const isLaunch = (command: number): boolean => program.ranks[0]?.commands[command]?.kind === "launch";

for (const graph of ["on", "off"] as const) {
  const on = createCudaBackend({ rendezvous: soloRendezvous(), graph });
  const group = await on.open({ world: 1, localRanks: [0] });
  const prepared = await group.prepare(program);
  for (let i = 0; i < 3; i++) await prepared.execute();
  const before = calls().length;
  const { hostMilliseconds, milliseconds } = await prepared.execute();
  const made = calls().slice(before);
  const counts: Record<string, number> = {};
  for (const name of made) counts[name] = (counts[name] ?? 0) + 1;
  console.log(JSON.stringify({ graph, counts, ordered: (hostMilliseconds ?? Infinity) <= milliseconds }));
  const { trace, origins = [] } = await prepared.execute({ trace: true });
  const placed = origins.map(({ rank, at, error }) => [rank, at > 0, error < 100]);
  console.log(JSON.stringify({ launches: trace.filter(({ command }) => isLaunch(command)).length, placed }));
  prepared.release();
  await group.close();
}
