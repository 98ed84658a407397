/** The commands of every kind of statement. Communications and computations have separate files. */
import { DeviceMesh, HostProgramBuilder } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import type { RecordOptions } from "../../src/compile/record.ts";
import { record } from "../../src/compile/record.ts";
import { dataKinds, listing, type ListingOptions } from "./listing.ts";

function commandsOf(
  build: (h: HostProgramBuilder) => void,
  options: Partial<RecordOptions> = {},
  shown: ListingOptions = {},
): string {
  const h = new HostProgramBuilder();
  build(h);
  return listing(record(h.build(), { rank: 0, ...options }), shown);
}

describe("memory", () => {
  it("allocates on the current stream, once", () => {
    const text = commandsOf((h) => {
      const [x, y] = [h.input([4]), h.tensor([4])];
      h.setCurrentStream(h.stream(2));
      h.allocate(y);
      h.allocate(y);
      h.add(x, x, { out: y });
    });
    expect(text).toMatchInlineSnapshot(`
      "
      worker 2: alloc T1
      worker 2: add(T0 float [4], T0 float [4]) -> T1 float [4]
      "
    `);
  });

  it("fills what asks for zeros", () => {
    const text = commandsOf((h) => {
      const y = h.allocate(h.tensor([4]), { zeroInit: true });
      h.set(y, { out: y });
    });
    expect(text).toMatchInlineSnapshot(`
      "
      caller: alloc T0
      caller: fill() -> T0 float [4]
      "
    `);
  });

  it("allocates nothing for inputs, outputs and slices", () => {
    const text = commandsOf((h) => {
      const [x, y] = [h.input([2, 4]), h.tensor([2, 4])];
      h.output(y);
      h.allocate(y);
      const slice = h.select(y, 0, 1);
      slice.setMemoryType("global");
      h.allocate(slice);
      h.set(h.select(x, 0, 1), { out: slice });
    });
    expect(text).toMatchInlineSnapshot(`
      "
      caller: copy T0+16 float [4] -> T1+16 float [4]
      "
    `);
  });

  it("keeps the memory of a tensor over the iterations of a loop", () => {
    const text = commandsOf((h) => {
      const [x, y, t] = [h.input([2, 4]), h.tensor([2, 4]), h.tensor([4])];
      h.output(y);
      h.forLoop(2, (i) => {
        const from = h.select(x, 0, i);
        h.allocate(t);
        h.add(from, from, { out: t });
        h.set(t, { out: h.select(y, 0, i) });
      });
    });
    expect(text).toMatchInlineSnapshot(`
      "
      caller: alloc T2
      caller: add(T0 float [4], T0 float [4]) -> T2 float [4]
      caller: copy T2 float [4] -> T1 float [4]
      caller: add(T0+16 float [4], T0+16 float [4]) -> T2 float [4]
      caller: copy T2 float [4] -> T1+16 float [4]
      "
    `);
  });

  it("frees and allocates anew after Deallocate", () => {
    const text = commandsOf((h) => {
      const x = h.input([4]);
      const y = h.add(x, x);
      h.deallocate(y);
      h.add(x, x, { out: y });
      h.deallocate(y);
    });
    expect(text).toMatchInlineSnapshot(`
      "
      caller: alloc T1
      caller: add(T0 float [4], T0 float [4]) -> T1 float [4]
      caller: free T1
      caller: alloc T1'
      caller: add(T0 float [4], T0 float [4]) -> T1' float [4]
      caller: free T1'
      "
    `);
  });

  it("frees shared memory with its last owner", () => {
    const text = commandsOf((h) => {
      const [x, z] = [h.input([4]), h.tensor([4])];
      h.output(z);
      const y = h.add(x, x);
      const same = h.set(y);
      h.deallocate(y);
      h.set(same, { out: z });
      h.deallocate(same);
    });
    expect(text).toMatchInlineSnapshot(`
      "
      caller: alloc T2
      caller: add(T0 float [4], T0 float [4]) -> T2 float [4]
      caller: copy T2 float [4] -> T1 float [4]
      caller: free T2
      "
    `);
  });

  it("never frees inputs and outputs", () => {
    const text = commandsOf((h) => {
      const [x, y] = [h.input([4]), h.tensor([4])];
      h.output(y);
      h.set(x, { out: y });
      h.deallocate(x);
      h.deallocate(y);
    });
    expect(text).toMatchInlineSnapshot(`
      "
      caller: copy T0 float [4] -> T1 float [4]
      "
    `);
  });

  it("starts a tensor that is input and output as a copy of the input", () => {
    const text = commandsOf((h) => {
      const x = h.input([4]);
      h.output(x);
      h.add(x, x, { out: x });
    });
    expect(text).toMatchInlineSnapshot(`
      "
      caller: copy T0 in float [4] -> T0 float [4]
      caller: add(T0 float [4], T0 float [4]) -> T0 float [4]
      "
    `);
  });

  it("lays buffers out in the order of the allocation domain, in the arena of their role", () => {
    const h = new HostProgramBuilder();
    const [x, y, s] = [h.input([2, 3]), h.tensor([2, 3]), h.tensor([2, 3], { memory: "symmetric" })];
    y.setAllocationDomain([1, 0]);
    h.output(y);
    h.allocate(s);
    h.set(x, { out: s });
    h.set(s, { out: y });
    const list = record(h.build(), { rank: 0 });
    expect(list.buffers.map(({ name, role, arena, bytes, position }) => [name, role, arena, bytes, position])).toEqual([
      ["T0", "input", "input", 24, 0],
      ["T1", "output", "output", 24, 0],
      ["T2", "temporary", "symmetric", 24, null],
    ]);
    expect(listing(list, { kinds: dataKinds })).toMatchInlineSnapshot(`
      "
      caller: copy T0 float [2, 3] -> T2 float [2, 3]
      caller: copy T2 float [2, 3] -> T1 float [2, 3] strides [1, 2]
      "
    `);
  });
});

describe("sizes", () => {
  const built = (): ReturnType<HostProgramBuilder["build"]> => {
    const h = new HostProgramBuilder();
    const mesh = DeviceMesh.range(4);
    const x = h.input([null, null], { mesh, parallel: ["DIDx"] });
    const y = h.tensor([x.extents[0] ?? null, x.extents[1] ?? null], { mesh, parallel: ["DIDx"] });
    h.output(y);
    h.set(x, { out: y });
    return h.build();
  };

  it("takes that of a sharded axis from the mesh, and has one index of it", () => {
    const list = record(built(), { rank: 3, sizes: { i2: 8 } });
    expect(list.buffers.map(({ shape }) => shape)).toEqual([
      [1, 8],
      [1, 8],
    ]);
  });

  it("takes a Map as well as an object", () => {
    expect(record(built(), { rank: 0, sizes: new Map([["i2", 8]]) })).toEqual(
      record(built(), { rank: 0, sizes: { i2: 8 } }),
    );
  });

  it("binds nothing on ranks outside the mesh", () => {
    const h = new HostProgramBuilder();
    const x = h.input([4], { mesh: new DeviceMesh([1, 2]) });
    h.output(x);
    const program = h.build();
    expect(record(program, { rank: 0 }).buffers).toEqual([]);
    expect(record(program, { rank: 2 }).buffers).toHaveLength(2);
  });
});

describe("streams", () => {
  it("synchronizes by an event, and not with itself", () => {
    const text = commandsOf((h) => {
      const caller = h.getCurrentStream();
      const worker = h.stream(0);
      h.synchronize(caller);
      h.setCurrentStream(worker);
      h.synchronize(caller);
      h.synchronize(worker);
      h.setCurrentStream(caller);
      h.synchronize(worker);
    });
    expect(text).toMatchInlineSnapshot(`
      "
      caller: record e0
      worker 0: wait e0
      worker 0: record e1
      caller: wait e1
      "
    `);
  });

  it("identifies streams by the values of their indices, and those without an index by their node", () => {
    const h = new HostProgramBuilder();
    const x = h.input([4]);
    const touch = (): void => void h.add(x, x, { out: h.tensor([4]) });
    for (const stream of [h.stream(2), h.stream(2), h.stream(3), h.stream(), h.stream()]) {
      h.setCurrentStream(stream);
      touch();
    }
    const list = record(h.build(), { rank: 0 });
    expect(list.streams.map(({ role, name }) => `${role} ${name}`)).toEqual([
      "caller caller",
      "worker worker 2",
      "worker worker 3",
      "worker stream 3",
      "worker stream 4",
    ]);
    expect(list.commands.filter(({ kind }) => kind === "launch").map(({ stream }) => stream)).toEqual([1, 1, 2, 3, 4]);
  });

  it("binds GetCurrentStream to what is current then", () => {
    const text = commandsOf((h) => {
      const x = h.input([4]);
      h.setCurrentStream(h.stream(1));
      const saved = h.getCurrentStream();
      h.setCurrentStream(h.stream(2));
      h.setCurrentStream(saved);
      h.add(x, x);
    });
    expect(text).toMatchInlineSnapshot(`
      "
      worker 1: alloc T1
      worker 1: add(T0 float [4], T0 float [4]) -> T1 float [4]
      "
    `);
  });

  it.each([
    [1, 2],
    [2, 3],
    [3, 4],
    [8, 5],
  ])("takes %i streams: %i queues for 4 iterations", (streams, queues) => {
    const h = new HostProgramBuilder();
    const caller = h.getCurrentStream();
    h.forLoop(4, (i) => {
      h.setCurrentStream(h.stream(h.scalars.mod(i, h.scalars.numberOfStreams)));
      h.synchronize(caller);
    });
    const list = record(h.build(), { rank: 0, streams });
    expect(list.streams).toHaveLength(queues);
    expect(list.eventCount).toBe(4);
  });
});

describe("loops and branches", () => {
  it("unrolls a loop with start, stop and step, and nests", () => {
    const text = commandsOf((h) => {
      const [x, y] = [h.input([8, 4]), h.tensor([8, 4])];
      h.output(y);
      h.forLoop({ start: 1, stop: 8, step: 3 }, (i) => {
        h.forLoop({ start: 0, stop: 2 }, (j) => {
          const row = h.scalars.add(i, h.scalars.mul(j, -1));
          h.set(h.select(x, 0, row), { out: h.select(y, 0, row) });
        });
      });
    });
    expect(text).toMatchInlineSnapshot(`
      "
      caller: copy T0+16 float [4] -> T1+16 float [4]
      caller: copy T0 float [4] -> T1 float [4]
      caller: copy T0+64 float [4] -> T1+64 float [4]
      caller: copy T0+48 float [4] -> T1+48 float [4]
      caller: copy T0+112 float [4] -> T1+112 float [4]
      caller: copy T0+96 float [4] -> T1+96 float [4]
      "
    `);
  });

  it("evaluates rank, scalars and extents", () => {
    const text = commandsOf(
      (h) => {
        const [x, y] = [h.input([null, 4]), h.tensor([4, 4])];
        h.output(y);
        const { add, named, rank, sub } = h.scalars;
        h.set(h.select(x, 0, add(rank, named("shift"))), { out: h.select(y, 0, 0) });
        h.set(h.select(x, 0, sub(x.extents[0] ?? 0, 1)), { out: h.select(y, 0, 1) });
      },
      { rank: 0, sizes: { i0: 6 }, scalars: { shift: 2 } },
    );
    expect(text).toMatchInlineSnapshot(`
      "
      caller: copy T0+32 float [4] -> T1 float [4]
      caller: copy T0+80 float [4] -> T1+16 float [4]
      "
    `);
  });

  it("takes one branch per iteration", () => {
    const text = commandsOf(
      (h) => {
        const [x, y] = [h.input([3, 4]), h.tensor([3, 4])];
        h.output(y);
        h.forLoop(3, (i) => {
          const [from, to] = [h.select(x, 0, i), h.select(y, 0, i)];
          h.ifThenElse(
            h.scalars.eq(i, h.scalars.named("which")),
            () => h.add(from, from, { out: to }),
            () => h.set(from, { out: to }),
          );
        });
      },
      { scalars: { which: 1 } },
    );
    expect(text).toMatchInlineSnapshot(`
      "
      caller: copy T0 float [4] -> T1 float [4]
      caller: add(T0+16 float [4], T0+16 float [4]) -> T1+16 float [4]
      caller: copy T0+32 float [4] -> T1+32 float [4]
      "
    `);
  });

  it("gives every command the statement, path and iteration that it comes from", () => {
    const h = new HostProgramBuilder();
    const [x, y] = [h.input([2, 4]), h.tensor([2, 4])];
    h.output(y);
    h.forLoop(2, (i) => h.ifThenElse(1, () => h.set(h.select(x, 0, i), { out: h.select(y, 0, i) })));
    const { origins } = record(h.build(), { rank: 0 });
    expect(origins).toEqual([
      {
        statement: "T3_l_float[iS5{4}] = Set( T2_l_float[iS4{4}], cache_op=Streaming )",
        path: [0, 0, 2],
        iteration: [0],
      },
      expect.objectContaining({ path: [0, 0, 2], iteration: [1] }),
    ]);
  });
});

describe("slices", () => {
  it("counts reduced axes and skips them", () => {
    const text = commandsOf((h) => {
      const x = h.input([2, 3, 4]);
      const total = h.sum(x, [1]);
      const z = h.tensor([4]);
      h.output(z);
      // Axis 1 is the reduced one: selecting it leaves the whole.
      h.set(h.select(h.select(total, 1, 7), 0, 1), { out: z });
    });
    expect(text).toMatchInlineSnapshot(`
      "
      caller: alloc T1
      caller: sum[1](T0 float [2, 3, 4]) -> T1 float [2, 4]
      caller: copy T1+16 float [4] -> T2 float [4]
      "
    `);
  });

  it("reads broadcast axes and axes of one element at 0, whatever the index", () => {
    const mesh = DeviceMesh.range(4);
    const text = commandsOf(
      (h) => {
        const x = h.input([4, "broadcast", 4], { mesh, parallel: ["DIDx"] });
        const y = h.tensor([4], { mesh });
        h.output(y);
        h.set(h.select(h.select(x, 1, 5), 0, 3), { out: y });
      },
      { rank: 2 },
    );
    expect(text).toMatchInlineSnapshot(`
      "
      caller: copy T0 float [4] -> T1 float [4]
      "
    `);
  });

  it("strides over inner axes", () => {
    const text = commandsOf((h) => {
      const [x, y] = [h.input([2, 3]), h.tensor([2, 3])];
      h.output(y);
      h.set(h.select(x, 1, 2), { out: h.select(y, 1, 0) });
    });
    expect(text).toMatchInlineSnapshot(`
      "
      caller: copy T0+8 float [2] strides [3] -> T1 float [2] strides [3]
      "
    `);
  });
});
