/**
 * The whole CUDA back end on fake GPUs: calls that the real libraries would accept, peers' memory, signals, graphs and
 * transfers.
 */
import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { readFlights } from "../../../src/cli/verify/compare-flight.ts";
import { compareFlights } from "../../../src/trace/flight/compare-flights.ts";
import { describe, expect, it } from "vitest";
import { obstacle, ownFakes } from "./fake/own-fakes.ts";
import { runRanks } from "./fake/run-ranks.ts";

const fakes = ownFakes(4);

describe.skipIf(obstacle !== null)("ranks on fake GPUs", () => {
  it("run programs in every idiom with the oracle's results, eager and as graphs", async () => {
    const { statuses, printed } = await runRanks(fakes(), 2, "rank.ts");
    const lines = printed.trim().split("\n");
    expect(lines.filter((line) => !line.endsWith(": ok"))).toEqual([]);
    expect(lines).toHaveLength(17);
    expect(statuses).toEqual([0, 0]);
    const calls = readFileSync(path.join(fakes().folder, "calls"), "utf8").split("\n");
    const count = (name: string): number => calls.filter((call) => call === name).length;
    // Ring and gather map peers' memory; every mapping is given back.
    expect(count("cuIpcOpenMemHandle")).toBeGreaterThan(0);
    expect(count("cuIpcCloseMemHandle")).toBe(count("cuIpcOpenMemHandle"));
    // 17 Programs on 2 ranks, 9 runs each of which the first issues eagerly.
    expect(count("cuStreamBeginCapture")).toBe(34);
    expect(count("cuGraphLaunch")).toBe(17 * 2 * 8);
    // The sum's kernel, of several blocks that count themselves, took in the signals and waits around it.
    const withBarriers = readdirSync(fakes().folder).filter(
      (name) =>
        /^kernel-.*\.cpp$/.test(name) &&
        readFileSync(path.join(fakes().folder, name), "utf8").includes("atomicAdd(gate, 1u)"),
    );
    expect(withBarriers).toHaveLength(1);
  }, 120_000);

  it("that wait for several peers at once report which of them have not signalled", async () => {
    const records = path.join(fakes().folder, "records");
    const { printed } = await runRanks(fakes(), 4, "stuck-rank.ts", records);
    expect(printed).toMatch(/^rank 0, caller: reached command 0, waitSignal .*; it waits for ranks 1 and 3 \(/m);
    // Of a process that frees nothing, fake GPUs leave nothing in the machine's memory.
    const id = /^process (\d+)$/m.exec(printed)?.[1];
    expect(id).toBeDefined();
    expect(readdirSync("/dev/shm").filter((name) => name.startsWith(`braid-fake-${id}-`))).toEqual([]);
    const { findings, ranks } = compareFlights(await readFlights(records));
    expect(findings.map(({ message }) => message)).toEqual([
      "ranks 1, 3 have no command that ends a wait: 1 stream of rank 0 waits for them",
    ]);
    expect(ranks.map(({ text }) => text)).toEqual([
      "rank 0: in run 1, 3 of 3 commands posted",
      ...[1, 2, 3].map((rank) => `rank ${rank}: has ended run 1`),
    ]);
  }, 60_000);

  it("hand a run to the driver in two calls when it is replayed, and one more for each that follows in a row", async () => {
    const { statuses, printed } = await runRanks(fakes(), 1, "host-time.ts");
    expect(statuses, printed).toEqual([0]);
    const [replayed, traced, row, eager, tracedToo, eagerRow] = printed
      .trim()
      .split("\n")
      .map((line): unknown => JSON.parse(line));
    // The query is the wait for the end, which the fake driver answers at once.
    const two = { cuCtxSetCurrent: 1, cuGraphLaunch: 1, cuStreamQuery: 1 };
    // Asked for, the ranks meet before the first call of a run.
    expect(replayed).toEqual({ graph: "on", counts: two, ordered: true, alone: 0, together: [0] });
    expect([traced, tracedToo]).toEqual(Array(2).fill({ launches: 5, placed: [[0, true, true]] }));
    const sums = { refused: "bad-option", sums: [150, 300, 450, 600], whole: true };
    // The stopwatch's events. Graphs are waited for after every 64 runs, so that the driver has room for them.
    const once = { cuCtxSetCurrent: 1, cuEventRecord: 2 };
    expect(row).toMatchObject({ ...sums, inRow: { ...once, cuGraphLaunch: 149, cuLaunchKernel: 2, cuStreamQuery: 3 } });
    expect(eagerRow).toMatchObject({ ...sums, inRow: { ...once, cuLaunchKernel: 150, cuStreamQuery: 1 } });
    expect(eager).toMatchObject({ graph: "off", counts: { cuCtxSetCurrent: 1, cuLaunchKernel: 5, cuStreamQuery: 1 } });
  }, 60_000);
});
