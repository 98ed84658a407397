/**
 * Times record, link and verify, the cost of a program before it first runs: allgather + matmul as a pipeline of
 * collectives and as a ring of sends and receives or of copies, with 8 devices and 8 chunks and with 64 of each; and
 * the part that is verification.
 */
import process from "node:process";
import { type CommandList, type HostProgram, link, lower, record, verify } from "@braid-compiler/braid";
import { gathered } from "./harness/programs.ts";
import type { Suite, Task } from "./harness/suite.ts";

const pipelines = [
  { name: "collectives", isRing: false, backend: "nccl" },
  { name: "ring, sends and receives", isRing: true, backend: "nccl" },
  { name: "ring, copies", isRing: true, backend: "cuda" },
] as const;

function listsOf(hosts: readonly HostProgram[]): readonly CommandList[] {
  return hosts.map((host, rank) => record(host, { rank, streams: 8 }));
}

/** Each case has as many chunks as devices. */
export function verifySuite(): Suite {
  const tasks = [8, 64].flatMap((devices) =>
    pipelines.flatMap(({ name, isRing, backend }): readonly Task[] => {
      const built = gathered(isRing ? [devices, 4, 64] : [devices, devices, 4, 64], isRing ? 0 : 1, 32);
      const hosts = Array.from({ length: devices }, (_, rank) => lower(built, { rank, backend }));
      const program = link(listsOf(hosts));
      const commands = program.ranks.reduce((sum, rank) => sum + rank.commands.length, 0);
      if (!verify(program).ok) throw new Error(`${name} does not verify`);
      const label = `${name}, ${devices} x ${devices} (${commands} commands)`;
      return [
        { name: label, run: () => void verify(link(listsOf(hosts)), { notes: false }) },
        { name: `${label}: verify alone`, run: () => void verify(program, { notes: false }) },
      ];
    }),
  );
  return {
    name: "record, link and verify",
    options: { iterations: 10, time: 500, warmupIterations: 3, warmupTime: 0 },
    tasks,
    after: () => console.log(`memory of the process: ${(process.memoryUsage().rss / 2 ** 20).toFixed(0)} MiB`),
  };
}
