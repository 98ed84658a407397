/**
 * Which buffers of hand-built loops get slots. Each program would get them, except for the property in the test's name.
 */
import { DeviceMesh, type HostProgram, HostProgramBuilder, link, record } from "@braid-compiler/braid";
import { runPass, shrinkStreamBuffers } from "@braid-compiler/braid/internals";
import { describe, expect, it } from "vitest";
import type { HostStream } from "../../src/host/nodes.ts";
import type { TensorView } from "../../src/ir/api/tensor-view.ts";
import { printScalar } from "../../src/ir/scalar/scalar.ts";

interface Loop {
  readonly h: HostProgramBuilder;
  readonly x: TensorView;
  /** The intermediate: one slice per iteration. */
  readonly t: TensorView;
  readonly y: TensorView;
  readonly i: Parameters<Parameters<HostProgramBuilder["forLoop"]>[1]>[0];
  readonly worker: HostStream;
  readonly caller: HostStream;
}

interface Variation {
  readonly body?: (loop: Loop) => void;
  readonly before?: (loop: Omit<Loop, "i" | "worker">) => void;
  readonly after?: (loop: Omit<Loop, "i" | "worker">) => void;
  readonly zeroInit?: boolean;
  readonly range?: Parameters<HostProgramBuilder["forLoop"]>[0];
  readonly width?: number;
}

const mesh = DeviceMesh.range(2);

/** `y[i] = x[i] + x[i]` by way of `t[i] = x[i]`. */
const copyAndAdd = ({ h, x, t, y, i }: Loop): void => {
  const chunk = h.set(h.select(x, 0, i), { out: h.select(t, 0, i) });
  h.add(chunk, chunk, { out: h.select(y, 0, i) });
};

function build({
  body = copyAndAdd,
  before = () => {},
  after = () => {},
  zeroInit = false,
  range = 16,
  width = 4,
}: Variation): HostProgram {
  const h = new HostProgramBuilder();
  const x = h.input([16, width], { mesh });
  const t = h.tensor([16, width], { mesh });
  const y = h.tensor([16, width], { mesh });
  h.output(y);
  h.allocate(t, { zeroInit });
  const caller = h.getCurrentStream();
  before({ h, x, t, y, caller });
  const { mod, numberOfStreams } = h.scalars;
  h.forLoop(range, (i) => {
    const worker = h.stream(mod(i, numberOfStreams));
    h.setCurrentStream(worker);
    h.synchronize(caller);
    body({ h, x, t, y, i, worker, caller });
    h.setCurrentStream(caller);
    h.synchronize(worker);
  });
  after({ h, x, t, y, caller });
  return h.build();
}

/** The extent of `t` after the pass, as printed. */
function extentOf(program: HostProgram): string {
  const axis = runPass(shrinkStreamBuffers, program).tensors[1]?.domain.logical[0];
  if (axis === undefined) throw new Error("t has an axis");
  return printScalar(axis.extent);
}

const slots = "( min(numberOfStreams, 16) )";

describe("gets slots", () => {
  const cases: Readonly<Record<string, Variation>> = {
    "an intermediate": {},
    "one that is freed behind the loop": { after: ({ h, t }) => h.deallocate(t) },
    "one that is written on both branches": {
      body: ({ h, x, t, y, i }) => {
        const { eq, rank } = h.scalars;
        const [from, to] = [h.select(x, 0, i), h.select(t, 0, i)];
        h.ifThenElse(
          eq(i, rank),
          () => void h.set(from, { out: to }),
          () => void h.unary("neg", from, { out: to }),
        );
        h.add(to, to, { out: h.select(y, 0, i) });
      },
    },
    "one that is written and read on branches of one predicate": {
      body: ({ h, x, t, y, i }) => {
        const { eq, rank } = h.scalars;
        const [from, to, out] = [h.select(x, 0, i), h.select(t, 0, i), h.select(y, 0, i)];
        h.ifThenElse(eq(i, rank), () => void h.set(from, { out: to }));
        h.ifThenElse(
          eq(i, rank),
          () => void h.add(to, to, { out }),
          () => void h.set(from, { out }),
        );
      },
    },
    "one that peers read until a Wait at the end of the iteration": {
      body: (loop) => {
        const { h, t, y, i } = loop;
        copyAndAdd(loop);
        const { sub, rank } = h.scalars;
        const peer = sub(1, rank);
        const [recv, send] = h.shareMemHandles(
          { type: "recv", buffer: h.select(y, 0, i), peer },
          { type: "send", buffer: h.select(t, 0, i), peer },
        );
        if (recv === undefined || send === undefined) throw new Error("two handles");
        for (const half of [send, recv]) h.post(half);
        for (const half of [recv, send]) h.wait(half);
      },
    },
    "one of a coalesced group that is waited for": {
      body: ({ h, x, t, y, i }) => {
        const { sub, rank } = h.scalars;
        const peer = sub(1, rank);
        const to = h.select(t, 0, i);
        h.startCoalescing();
        h.send(h.select(x, 0, i), { peer });
        h.recv(to, { peer });
        h.wait(h.endCoalescing());
        h.add(to, to, { out: h.select(y, 0, i) });
      },
    },
  };

  it.each(Object.entries(cases))("%s", (_, variation) => {
    expect(extentOf(build(variation))).toBe(slots);
  });
});

describe("keeps its extent", () => {
  const group = ({ h, x, t, i }: Loop): ReturnType<HostProgramBuilder["endCoalescing"]> => {
    const { sub, rank } = h.scalars;
    const peer = sub(1, rank);
    h.startCoalescing();
    h.send(h.select(x, 0, i), { peer });
    h.recv(h.select(t, 0, i), { peer });
    return h.endCoalescing();
  };
  const cases: Readonly<Record<string, Variation>> = {
    "a buffer that is read before the loop": { before: ({ h, t }) => void h.unary("neg", t) },
    "a buffer that is read behind the loop": { after: ({ h, t }) => void h.unary("neg", t) },
    "a buffer whose last slice is read behind the loop": {
      body: (loop) => {
        copyAndAdd(loop);
      },
      after: ({ h, t }) => void h.unary("neg", h.select(t, 0, 15)),
    },
    "a buffer that a second loop reads": {
      after: ({ h, t, y }) => h.forLoop(16, (i) => void h.set(h.select(t, 0, i), { out: h.select(y, 0, i) })),
    },
    "a buffer that is zero at first": { zeroInit: true },
    "a buffer that is used whole in the loop": {
      body: (loop) => {
        copyAndAdd(loop);
        loop.h.unary("neg", loop.t);
      },
    },
    "a buffer of which an iteration reads another one's slice": {
      body: (loop) => {
        copyAndAdd(loop);
        const { h, t, y, i } = loop;
        h.set(h.select(t, 0, h.scalars.mod(h.scalars.add(i, 1), 16)), { out: h.select(y, 0, i) });
      },
    },
    "a buffer whose one slice all iterations add to": {
      body: ({ h, x, t, y, i }) => {
        const total = h.select(t, 0, 0);
        h.add(h.select(x, 0, i), total, { out: total });
        h.set(total, { out: h.select(y, 0, i) });
      },
    },
    "a buffer that is read before it is written": {
      body: (loop) => {
        const { h, t, y, i } = loop;
        h.set(h.select(t, 0, i), { out: h.select(y, 0, i) });
        copyAndAdd(loop);
      },
    },
    "a buffer that is written on one branch": {
      body: ({ h, x, t, y, i }) => {
        const to = h.select(t, 0, i);
        h.ifThenElse(h.scalars.eq(i, h.scalars.rank), () => void h.set(h.select(x, 0, i), { out: to }));
        h.add(to, to, { out: h.select(y, 0, i) });
      },
    },
    "a buffer of which a part is written": {
      body: ({ h, x, t, y, i }) => {
        const to = h.select(t, 0, i);
        h.set(h.select(h.select(x, 0, i), 0, 2), { out: h.select(to, 0, 2) });
        h.add(to, to, { out: h.select(y, 0, i) });
      },
    },
    "a buffer whose slice is bound on one branch": {
      body: ({ h, x, t, y, i }) => {
        const to = h.tensor([4], { mesh });
        h.ifThenElse(h.scalars.eq(i, h.scalars.rank), () => void h.select(t, 0, i, { out: to }));
        h.set(h.select(x, 0, i), { out: to });
        h.add(to, to, { out: h.select(y, 0, i) });
      },
    },
    "a buffer that is used on another stream": {
      body: (loop) => {
        const { h, caller, worker } = loop;
        h.setCurrentStream(caller);
        copyAndAdd(loop);
        h.setCurrentStream(worker);
      },
    },
    "a buffer that is used on the stream of the next iteration": {
      body: (loop) => {
        const { h, i, worker } = loop;
        const { add, mod, numberOfStreams } = h.scalars;
        h.setCurrentStream(h.stream(mod(add(i, 1), numberOfStreams)));
        copyAndAdd(loop);
        h.setCurrentStream(worker);
      },
    },
    "a buffer of a group that is never waited for": { body: (loop) => void group(loop) },
    "a buffer of a group that is waited for on the caller's stream": {
      body: (loop) => {
        const { h, caller, worker } = loop;
        const posted = group(loop);
        h.setCurrentStream(caller);
        h.wait(posted);
        h.setCurrentStream(worker);
      },
    },
    "a buffer that peers read until a Wait on one branch": {
      body: (loop) => {
        const { h, t, i } = loop;
        copyAndAdd(loop);
        const { sub, rank, eq } = h.scalars;
        const [send] = h.shareMemHandles({ type: "send", buffer: h.select(t, 0, i), peer: sub(1, rank) });
        if (send === undefined) throw new Error("one handle");
        h.post(send);
        h.ifThenElse(eq(i, rank), () => h.wait(send));
      },
    },
    "a buffer that a Reduce writes on its root alone": {
      body: ({ h, x, t, y, i }) => {
        const to = h.select(t, 0, i);
        h.wait(h.communication("Reduce", { input: h.select(x, 0, i), output: to, root: 0 }));
        h.add(to, to, { out: h.select(y, 0, i) });
      },
    },
    "a buffer that a view without memory of its own outlives": {
      body: (loop) => {
        copyAndAdd(loop);
        const { h, t, i } = loop;
        h.unary("neg", h.set(h.select(t, 0, i)));
      },
    },
    "a buffer that an inner loop uses": {
      body: ({ h, x, t, y, i }) => {
        const [from, to, out] = [h.select(x, 0, i), h.select(t, 0, i), h.select(y, 0, i)];
        h.set(from, { out: to });
        h.forLoop(2, () => void h.add(to, to, { out }));
      },
    },
    "a buffer with more slices than the loop has iterations": { range: 8 },
    "a buffer of a loop that begins later": { range: { start: 1, stop: 16 } },
    "a buffer of a loop with steps of two": { range: { stop: 16, step: 2 } },
  };

  it.each(Object.entries(cases))("%s", (_, variation) => {
    expect(extentOf(build(variation))).toBe("16");
  });

  it("an output", () => {
    const h = new HostProgramBuilder();
    const [x, y] = [h.input([16, 4]), h.tensor([16, 4])];
    h.output(y);
    h.allocate(y);
    h.forLoop(16, (i) => {
      h.setCurrentStream(h.stream(h.scalars.mod(i, h.scalars.numberOfStreams)));
      h.set(h.select(x, 0, i), { out: h.select(y, 0, i) });
    });
    const program = h.build();
    expect(runPass(shrinkStreamBuffers, program)).toBe(program);
  });
});

describe("memory", () => {
  it.each([
    [1, 1],
    [3, 3],
    [16, 16],
    [40, 16],
  ])("with %i streams there are %i slots", (streams, count) => {
    const program = runPass(shrinkStreamBuffers, build({ after: ({ h, t }) => h.deallocate(t) }));
    const { buffers } = record(program, { rank: 0, streams });
    expect(buffers.find(({ role }) => role === "temporary")?.shape).toEqual([count, 4]);
  });

  it("the arenas shrink by what the slots save", () => {
    const width = 64;
    const program = build({ width });
    const bytes = (host: HostProgram): number =>
      link([0, 1].map((rank) => record(host, { rank, streams: 2 }))).ranks[0]?.arenaBytes.temporary ?? 0;
    expect(bytes(program)).toBe(16 * width * 4);
    expect(bytes(runPass(shrinkStreamBuffers, program))).toBe(2 * width * 4);
  });
});
