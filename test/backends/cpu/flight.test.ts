/** The flight recorder of the CPU back end: nothing is written before a run fails, and then every rank's record. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { DiagnosticError, link, type Group } from "@braid-compiler/braid";
import { openMachineGroup } from "../../../src/backends/cpu/machine-group.ts";
import { openThreadedGroup } from "../../../src/backends/cpu/threads/threaded-group.ts";
import { createFlightRecorder, type FlightRecorder } from "../../../src/backends/flight/flight-recorder.ts";
import { readFlights } from "../../../src/cli/verify/compare-flight.ts";
import { compareFlights } from "../../../src/trace/flight/compare-flights.ts";
import { buildLists } from "../../machine/list-builder.ts";

const folder = mkdtempSync(path.join(tmpdir(), "braid-flight-test-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Rank 0 copies, then waits for a signal of each other rank; rank 1 sends none if `lacking`. */
function gather(lacking: boolean) {
  return link(
    buildLists(3, (list, rank) => {
      if (rank === 0) list.statement("T1 = Set(T0)").copy(0, list.input([4]), list.output([4]));
      for (const peer of rank === 0 ? [1, 2] : [0]) {
        const [role, view] = rank === 0 ? (["recv", list.output([4])] as const) : (["send", list.input([4])] as const);
        const pair = list.statement(`P2P ${Math.max(rank, peer)}`).pair("get", role, peer, view);
        if (rank === 0) list.waitPeer(0, pair, "ready");
        else if (!(rank === 1 && lacking)) list.signalPeer(0, pair, "ready");
      }
    }),
  );
}

const groups: Readonly<Record<string, (recorder: FlightRecorder) => Group>> = {
  threads: (recorder) => openThreadedGroup({ workers: 2 }, null, recorder),
  machine: (recorder) => openMachineGroup({}, recorder),
};

describe.each(Object.entries(groups))("on %s", (name, open) => {
  const records = path.join(folder, name);

  it("a run that ends leaves no record, and one that hangs leaves those of all ranks", async () => {
    const group = open(createFlightRecorder({ folder: records }));
    const good = await group.prepare(gather(false));
    await good.execute({ timeout: 10 });
    expect(existsSync(records)).toBe(false);
    const stuck = await group.prepare(gather(true));
    const error: unknown = await stuck.execute({ timeout: 10 }).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(DiagnosticError);
    expect(String(error)).toMatch(`note: flight record: braid verify --flight ${records}`);
    expect(readdirSync(records).toSorted()).toEqual(["rank-0.json", "rank-1.json", "rank-2.json"]);
    const { findings, ranks } = compareFlights(await readFlights(records));
    expect(findings.map(({ message }) => message)).toEqual([
      "rank 1 has no command that ends a wait: 1 stream of rank 0 waits for it",
    ]);
    expect(ranks[0]).toMatchObject({
      text: "rank 0: in run 2, 3 of 3 commands posted",
      reason: expect.stringMatching(/^stuck: /) as unknown,
    });
    expect(ranks[0]?.streams[0]?.last).toEqual(["ended command 0 (copy) of: T1 = Set(T0)"]);
    await group.close();
  });

  it("a recorder removes the record that an earlier one left, and writes one when asked", async () => {
    const recorder = createFlightRecorder({ folder: records });
    const group = open(recorder);
    const prepared = await group.prepare(gather(false));
    expect(readdirSync(records)).toEqual([]);
    await prepared.execute({ timeout: 10 });
    expect(recorder.write("asked")).toBeNull();
    const { findings, ranks } = compareFlights(await readFlights(records));
    expect(findings).toEqual([]);
    expect(ranks.map(({ text }) => text)).toEqual([0, 1, 2].map((rank) => `rank ${rank}: has ended run 1`));
    await group.close();
  });

  it("a folder that cannot be written is said in the note", async () => {
    const group = open(createFlightRecorder({ folder: "/dev/null/flight" }));
    const stuck = await group.prepare(gather(true));
    await expect(stuck.execute({ timeout: 10 })).rejects.toThrow(
      "note: no flight record was written: /dev/null/flight: not a directory",
    );
    await group.close();
  });
});
