/** The rewrite copy-stream: the moved commands, the edges around them, and the same bits under every interleaving. */
import { DeviceMesh, Fusion, lower, matmul, record, type Program } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import { openMachineGroup } from "../../src/backends/cpu/machine-group.ts";
import { link } from "../../src/commands/link/link.ts";
import { copyStream } from "../../src/schedule/rewrites/copy-stream.ts";
import { parseInterleaving } from "../../src/machine/interleaving.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";

const devices = 4;

function ring(options: { backend: "cuda"; protocol: "get" | "put" } | { backend: "nccl" }): Program {
  const f = new Fusion();
  const a = f.input([devices, 6, 8], "float");
  const b = f.input([8, 5], "float");
  const c = matmul(a, b);
  f.output(c);
  for (const tensor of [a, b, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  a.axis(0).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return link(
    Array.from({ length: devices }, (_, rank) =>
      record(lower(f, { ...options, rank }), {
        rank,
        sizes: new Map(),
        streams: 2,
        ...("protocol" in options ? { protocol: options.protocol } : {}),
      }),
    ),
  );
}

async function outputs(program: Program, schedule: string): Promise<readonly Uint8Array[]> {
  const prepared = await openMachineGroup({ interleaving: parseInterleaving(schedule), transfers: "eager" }).prepare(
    program,
  );
  const random = createRandom(2);
  for (const { id, role, bytes } of program.buffers) {
    if (role === "input")
      prepared.write(id, new Uint8Array(Float32Array.from({ length: bytes / 4 }, () => random.float()).buffer));
  }
  for (let run = 0; run < 3; run++) await prepared.execute();
  return program.buffers.flatMap(({ id, role }) => (role === "output" ? [prepared.read(id)] : []));
}

describe.each(["get", "put"] as const)("copies by %s", (protocol) => {
  it("all lie on one copy stream per rank, each between an event to it and one back", () => {
    const program = copyStream.run(ring({ backend: "cuda", protocol }), "dedicated");
    for (const { rank, streams, commands, origins, transferOf, eventCount } of program.ranks) {
      const copies = streams.findIndex(({ role }) => role === "copy");
      expect(streams.filter(({ role }) => role === "copy")).toHaveLength(1);
      const peers = commands.flatMap((command, i) =>
        command.kind === "copy" &&
        [command.source, command.destination].some(({ buffer }) => at(program.buffers, buffer).rank !== rank)
          ? [i]
          : [],
      );
      expect(peers.length).toBeGreaterThan(0);
      for (const i of peers) {
        expect(commands[i]?.stream).toBe(copies);
        expect([i - 2, i - 1, i + 1, i + 2].map((j) => commands[j]?.kind)).toEqual([
          "recordEvent",
          "waitEvent",
          "recordEvent",
          "waitEvent",
        ]);
      }
      expect(origins).toHaveLength(commands.length);
      expect(transferOf).toHaveLength(commands.length);
      const events = commands.flatMap((command) => (command.kind === "recordEvent" ? [command.event] : []));
      expect(new Set(events).size).toBe(events.length);
      expect(events.length).toBe(eventCount);
    }
  });

  it("give the same bits in every schedule", async () => {
    const program = ring({ backend: "cuda", protocol });
    const expected = await outputs(program, "seed:1");
    for (const seed of [1, 2, 3, 4]) {
      const found = await outputs(copyStream.run(program, "dedicated"), `seed:${seed}`);
      for (const [i, bytes] of found.entries()) expect(Buffer.compare(bytes, at(expected, i))).toBe(0);
    }
  });
});

describe("a Program whose ranks copy nothing from peers", () => {
  it("stays the same object", () => {
    const program = ring({ backend: "nccl" });
    expect(copyStream.run(program, "dedicated")).toBe(program);
  });
});
