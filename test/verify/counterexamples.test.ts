/**
 * Counterexamples: for every wait of the examples that is left out on one rank, and makes the program wrong, the
 * repaired program verifies and gives the right bits, and where one run can show the race the schedule makes an output
 * differ.
 */
import { describe, expect, test } from "vitest";
import {
  type CommandList,
  DeviceMesh,
  HostProgramBuilder,
  link,
  lower,
  type Program,
  record,
  verify,
} from "@braid-compiler/braid";
import { createCpuBackend, parseInterleaving } from "../../src/cpu.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { loadPattern } from "../support/example-program.ts";

const rankCount = 2;

async function exampleLists(
  name: string,
  params: Readonly<Record<string, number>>,
  backend: "nccl" | "cuda",
): Promise<readonly CommandList[]> {
  const program = await loadPattern(`${name}.ts`);
  const built = program.build({ devices: rankCount, params });
  if ("kind" in built) throw new Error(`${name} is a host program`);
  return Array.from({ length: rankCount }, (_, rank) => record(lower(built, { rank, backend }), { rank, streams: 2 }));
}

/** The bits of all outputs after one run on the machine. */
async function outputsOf(program: Program, schedule: string | null): Promise<string> {
  const on = createCpuBackend({ interleaving: schedule === null ? { kind: "turns" } : parseInterleaving(schedule) });
  const group = await on.open({ world: rankCount, localRanks: [0, 1] });
  const prepared = await group.prepare(program);
  const random = createRandom(7);
  for (const { role, id, bytes } of program.buffers) {
    if (role !== "input") continue;
    const values = Float32Array.from({ length: bytes / 4 }, () => 0.5 + random.float());
    prepared.write(id, new Uint8Array(values.buffer));
  }
  await prepared.execute();
  const outputs = program.buffers.filter(({ role }) => role === "output");
  return outputs.map(({ id }) => Buffer.from(prepared.read(id)).toString("base64")).join(" ");
}

const waits: ReadonlySet<string> = new Set(["waitEvent", "waitPeer", "waitRank"]);

function withoutWait(lists: readonly CommandList[], rank: number, index: number): readonly CommandList[] {
  return lists.map((list) =>
    list.rank === rank
      ? { ...list, commands: list.commands.toSpliced(index, 1), origins: list.origins.toSpliced(index, 1) }
      : list,
  );
}

describe.each([
  ["allgather-matmul", { S: 2, M: 8, K: 4, N: 4 }, "nccl"],
  ["allgather-matmul", { S: 2, M: 8, K: 4, N: 4 }, "cuda"],
  ["ring-allgather-matmul", { M: 8, K: 4, N: 4 }, "nccl"],
  ["ring-allgather-matmul", { M: 8, K: 4, N: 4 }, "cuda"],
] as const)("%s %o %s", (name, params, backend) => {
  test("every wait left out", async () => {
    const lists = await exampleLists(name, params, backend);
    expect(verify(link(lists))).toMatchObject({ ok: true, findings: [] });
    const right = await outputsOf(link(lists), null);
    const counts = { wrong: 0, shown: 0 };
    for (const [index, { kind }] of at(lists, 1).commands.entries()) {
      if (!waits.has(kind)) continue;
      const program = link(withoutWait(lists, 1, index));
      const report = verify(program);
      if (report.ok) continue;
      counts.wrong++;
      const shows = report.findings.filter(
        ({ interleaving, commands }) =>
          interleaving !== null && commands.every(({ kind: k }) => k !== "alloc" && k !== "free"),
      );
      if (shows.length === 0) continue;
      const replays = await Promise.all(shows.map(({ interleaving }) => outputsOf(program, interleaving)));
      expect(
        replays.some((outputs) => outputs !== right),
        `command ${index}`,
      ).toBe(true);
      counts.shown++;
    }
    expect(counts.wrong).toBeGreaterThan(3);
    expect(counts.shown).toBeGreaterThan(0);
  }, 60_000);
});

test("the nearest common ancestor and the missing edge of a race", async () => {
  const lists = await exampleLists("allgather-matmul", { S: 2, M: 8, K: 4, N: 4 }, "nccl");
  const index = at(lists, 0).commands.findIndex(
    ({ kind }, i) => kind === "waitEvent" && at(at(lists, 0).origins, i).statement.startsWith("Wait"),
  );
  const { findings } = verify(link(withoutWait(lists, 0, index)));
  const finding = at(
    findings.filter(({ code }) => code === "transfer-not-waited"),
    0,
  );
  expect(finding.missingEdge?.from.kind).toBe("transfer");
  expect(finding.missingEdge?.to.kind).toBe("launch");
  expect(finding.ancestor).not.toBeNull();
  expect(finding.ancestor?.rank).toBe(0);
});

/**
 * Rank 0 puts its sum into rank 1's buffer, which rank 1 adds to itself; the put comes two statements after the sum
 * that reads it. `waits`: rank 1 waits for the put before or after it reads.
 */
function putAndUse(waits: "before" | "behind"): Program {
  const lists = [0, 1].map((rank) => {
    const h = new HostProgramBuilder();
    const mesh = DeviceMesh.range(2);
    const x = h.input([4], { mesh });
    const [sum, place, out] = [h.tensor([4], { mesh }), h.tensor([4], { mesh }), h.tensor([4], { mesh })];
    h.output(out);
    for (const tensor of [sum, place, out]) h.allocate(tensor);
    if (rank === 0) {
      const halves = h.shareMemHandles({ type: "send", buffer: sum, peer: 1 });
      h.set(x, { out });
      h.add(out, x, { out: sum });
      h.add(sum, x, { out });
      for (const send of halves) h.post(send);
      for (const send of halves) h.wait(send);
    } else {
      const halves = h.shareMemHandles({ type: "recv", buffer: place, peer: 0 });
      for (const recv of halves) h.post(recv);
      for (const recv of halves) h.wait(recv);
      h.add(place, place, { out });
    }
    return record(h.build(), { rank, streams: 1, protocol: "put" });
  });
  const program = link(lists);
  if (waits === "before") return program;
  const swap = <T>(values: readonly T[], first: number): readonly T[] =>
    values.map((value, i) => (i === first ? at(values, first + 1) : i === first + 1 ? at(values, first) : value));
  const ranks = program.ranks.map((list) => {
    const wait = list.commands.findIndex(({ kind }) => kind === "waitSignal");
    return list.rank === 0 ? list : { ...list, commands: swap(list.commands, wait), origins: swap(list.origins, wait) };
  });
  return { ...program, ranks };
}

test("ranks with programs of their own: the put comes before what follows the peer's recv", async () => {
  const right = putAndUse("before");
  expect(verify(right).findings).toEqual([]);
  const wrong = putAndUse("behind");
  const { findings } = verify(wrong);
  expect(findings.map(({ code, commands }) => [code, commands.map(({ rank, kind }) => [rank, kind])])).toEqual([
    [
      "data-race",
      [
        [0, "copy"],
        [1, "launch"],
      ],
    ],
  ]);
  const outputs = await outputsOf(right, null);
  for (const { interleaving } of findings) expect(await outputsOf(wrong, interleaving)).not.toBe(outputs);
});
