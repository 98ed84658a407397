/** Transfers between two hosts, which are ranks of this process, are timed at every size. */
import { expect, it } from "vitest";
import { placesOnCpu } from "../../../src/cli/ranks/places.ts";
import { calibrationSizes, tookBeyond } from "../../../src/tune/calibrate/calibration-host.ts";
import { measureNetwork } from "../../../src/tune/calibrate/measure-profile.ts";
import type { ProbeGraph } from "../../../src/tune/calibrate/probe.ts";

it("by collective, and for sends and receives", async () => {
  const places = placesOnCpu(4, 20);
  const host = {
    devices: 2,
    hosts: 2,
    placeFor: async (graph: ProbeGraph) => places.placeFor(graph),
    gather: async (own: readonly number[]) => [own],
    fill: () => {},
  };
  const sizes = { ...calibrationSizes.cpu, bytes: [1024, 4 << 20] };
  const said: string[] = [];
  try {
    const say = (line: string): number => said.push(line);
    const network = await measureNetwork({ ...host, sizes, say, took: tookBeyond(host, 0) });
    expect(network?.nics).toBe(2);
    const { transfers = [] } = network ?? {};
    expect(transfers.map(({ type, ranks }) => `${type} ${ranks}`)).toEqual([
      "Allgather 2",
      "Allreduce 2",
      "ReduceScatter 2",
      "AllToAll 2",
      "group 2",
    ]);
    for (const { timings } of transfers) {
      const [few, many] = timings.map(({ microseconds }) => microseconds);
      expect(many).toBeGreaterThan(few ?? Infinity);
    }
    expect(said).toContain("Allreduce between hosts, 1024 bytes");
    expect(await measureNetwork({ ...host, devices: 4, hosts: 1, sizes, say, took: tookBeyond(host, 0) })).toBeNull();
  } finally {
    await places.close();
  }
});
