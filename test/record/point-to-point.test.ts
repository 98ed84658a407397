/** Sends and receives: coalesced, alone, and one-sided by either protocol. */
import { DeviceMesh, HostProgramBuilder } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import { link } from "../../src/commands/link/link.ts";
import type { HostProgram } from "../../src/host/nodes.ts";
import { record } from "../../src/compile/record.ts";
import { listing } from "./listing.ts";

const mesh = DeviceMesh.range(3);

describe("NCCL", () => {
  it("posts a coalesced group as one transfer, with one event", () => {
    const h = new HostProgramBuilder();
    const [x, y] = [h.input([4], { mesh }), h.tensor([4], { mesh })];
    h.output(y);
    const { add, mod, rank } = h.scalars;
    h.startCoalescing();
    h.send(x, { peer: mod(add(rank, 1), 3) });
    h.recv(y, { peer: mod(add(rank, 2), 3) });
    h.wait(h.endCoalescing());
    expect(listing(record(h.build(), { rank: 2 }))).toMatchInlineSnapshot(`
      "
      caller: record e0
      NCCL world: wait e0
      NCCL world: send T0 float [4] to 0; recv T1 float [4] from 1
      NCCL world: record e1
      caller: wait e1
      "
    `);
  });

  it("collects a group over loops and branches", () => {
    const h = new HostProgramBuilder();
    const [x, y] = [h.input([3, 4], { mesh }), h.tensor([3, 4], { mesh })];
    h.output(y);
    const { ne, rank } = h.scalars;
    h.startCoalescing();
    h.forLoop(3, (i) => {
      h.ifThenElse(ne(i, rank), () => {
        h.send(h.select(x, 0, i), { peer: i });
        h.recv(h.select(y, 0, i), { peer: i });
      });
    });
    h.wait(h.endCoalescing());
    expect(listing(record(h.build(), { rank: 1 }), { kinds: ["transfer"] })).toMatchInlineSnapshot(`
      "
      NCCL world: send T0 float [4] to 0; recv T1 float [4] from 0; send T0+32 float [4] to 2; recv T1+32 float [4] from 2
      "
    `);
  });

  it("posts nothing for an empty group, and waits for nothing", () => {
    const h = new HostProgramBuilder();
    const x = h.input([4], { mesh });
    h.startCoalescing();
    h.ifThenElse(h.scalars.rank, () => void h.send(x, { peer: 0 }));
    h.wait(h.endCoalescing());
    expect(listing(record(h.build(), { rank: 0 })).trim()).toBe("");
  });

  it("posts a lone send or receive as a group of one", () => {
    const h = new HostProgramBuilder();
    const x = h.input([2, 4], { mesh });
    h.send(h.select(x, 1, 2), { peer: 1 });
    h.wait(h.recv(x, { peer: 2, backend: "ucc" }));
    expect(listing(record(h.build(), { rank: 0 }))).toMatchInlineSnapshot(`
      "
      caller: record e0
      NCCL world: wait e0
      NCCL world: send T0+8 float [2] strides [4] to 1
      NCCL world: record e1
      caller: record e2
      UCC world: wait e2
      UCC world: recv T0 float [2, 4] from 2
      UCC world: record e3
      caller: wait e3
      "
    `);
  });
});

describe("CUDA", () => {
  /** Every rank sends its input to the next one, twice. `order` says which half is posted first. */
  function ring(order: "send first" | "recv first"): HostProgram {
    const h = new HostProgramBuilder();
    const [x, y] = [h.input([4], { mesh }), h.tensor([2, 4], { mesh })];
    h.output(y);
    const { add, mod, rank } = h.scalars;
    h.forLoop(2, (i) => {
      const [recv, send] = h.shareMemHandles(
        { type: "recv", buffer: h.select(y, 0, i), peer: mod(add(rank, 2), 3) },
        { type: "send", buffer: x, peer: mod(add(rank, 1), 3) },
      );
      if (recv === undefined || send === undefined) throw new Error("two handles");
      for (const half of order === "send first" ? [send, recv] : [recv, send]) h.post(half);
      h.wait(send);
      h.wait(recv);
    });
    return h.build();
  }

  it("get: the sender signals, the receiver copies", () => {
    expect(listing(record(ring("send first"), { rank: 0 }))).toMatchInlineSnapshot(`
      "
      caller: signal ready of pair 0
      caller: wait for ready of pair 1
      caller: get recv #0 T1 float [4] from 2
      caller: signal done of pair 1
      caller: wait for done of pair 0
      caller: signal ready of pair 2
      caller: wait for ready of pair 3
      caller: get recv #1 T1+16 float [4] from 2
      caller: signal done of pair 3
      caller: wait for done of pair 2
      "
    `);
  });

  it("put: the receiver signals, the sender copies", () => {
    expect(listing(record(ring("recv first"), { rank: 0, protocol: "put" }))).toMatchInlineSnapshot(`
      "
      caller: signal ready of pair 0
      caller: wait for ready of pair 1
      caller: put send #0 T0 float [4] to 1
      caller: signal done of pair 1
      caller: wait for done of pair 0
      caller: signal ready of pair 2
      caller: wait for ready of pair 3
      caller: put send #1 T0 float [4] to 1
      caller: signal done of pair 3
      caller: wait for done of pair 2
      "
    `);
  });

  it.each([
    ["get", "send first", ["symmetric", "output"]],
    ["put", "recv first", ["input", "symmetric"]],
  ] as const)("%s: what peers reach lies in the symmetric arena, inputs and outputs too", (protocol, order, arenas) => {
    const program = ring(order);
    const { buffers } = link([0, 1, 2].map((rank) => record(program, { rank, protocol })));
    expect(buffers.map(({ arena }) => arena)).toEqual([...arenas, ...arenas, ...arenas]);
  });

  it("takes a signal once: a second Wait follows the stream that took it", () => {
    const h = new HostProgramBuilder();
    const x = h.input([4], { mesh });
    const [send] = h.shareMemHandles({ type: "send", buffer: x, peer: 1 });
    if (send === undefined) throw new Error("a handle");
    h.post(send);
    h.wait(send);
    h.wait(send);
    h.setCurrentStream(h.stream(0));
    h.wait(send);
    expect(listing(record(h.build(), { rank: 0 }))).toMatchInlineSnapshot(`
      "
      caller: signal ready of pair 0
      caller: wait for done of pair 0
      caller: record e0
      worker 0: wait e0
      "
    `);
  });
});
