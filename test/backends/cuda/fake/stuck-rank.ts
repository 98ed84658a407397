/**
 * One rank of a test on fake GPUs of a run that hangs: rank 0 waits for a signal from every other rank, and only even
 * ranks signal. Rank 0 prints its process number and the timeout message, and all ranks write their flight records to the
 * folder given. The process frees nothing.
 */
import process from "node:process";
import { createFlightRecorder } from "../../../../src/backends/flight/flight-recorder.ts";
import { createCudaBackend } from "../../../../src/cuda.ts";
import { link } from "../../../../src/commands/link/link.ts";
import { DiagnosticError } from "../../../../src/diagnostics/diagnostic.ts";
import { enterWorld } from "../../../../src/launch/enter-world.ts";
import { rankEnvironment } from "../../../../src/launch/rank-environment.ts";
import { buildLists } from "../../../machine/list-builder.ts";

const who = rankEnvironment(process.env);
if (who === null) throw new Error("no rank in the environment");
process.env["FAKE_CUDA_PATIENCE"] = "300";
const world = await enterWorld(who, process.env, 20_000);
console.log(`process ${process.pid}`);

const program = link(
  buildLists(world.worldSize, (list, rank) => {
    for (let peer = 1; peer < world.worldSize; peer++) {
      if (rank !== 0 && rank !== peer) continue;
      const [role, other, view] =
        rank === 0 ? (["recv", peer, list.output([4])] as const) : (["send", 0, list.input([4])] as const);
      const pair = list.pair("get", role, other, view);
      if (rank === 0) list.waitPeer(0, pair, "ready");
      else if (rank % 2 === 0) list.signalPeer(0, pair, "ready");
    }
  }),
);

const flight = createFlightRecorder({ folder: process.argv[2] ?? "" });
const group = await createCudaBackend({ rendezvous: world, flight }).open({
  world: world.worldSize,
  localRanks: [world.rank],
});
const prepared = await group.prepare(program);
try {
  await prepared.execute({ timeout: 1 });
} catch (error) {
  console.log(error instanceof DiagnosticError ? error.diagnostics[0]?.found : error);
}
// Nobody leaves before rank 0 has told what it found: the end of one is the end of all.
await world.barrier().catch(flight.failed);
process.exit(0);
