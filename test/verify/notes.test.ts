/**
 * Notes on correct programs: needless synchronization, iterations serialized without shared data, memory kept on some
 * ranks.
 */
import { describe, expect, test } from "vitest";
import {
  compile,
  DeviceMesh,
  type Finding,
  Fusion,
  HostProgramBuilder,
  linear,
  link,
  record,
  verify,
} from "@braid-compiler/braid";
import { at } from "../../src/support/invariant.ts";
import { exampleFusion } from "../support/example-program.ts";
import { buildLists } from "../machine/list-builder.ts";
import { verifyLists } from "../support/verify-lists.ts";

function notesOf(build: (h: HostProgramBuilder) => void): readonly Finding[] {
  const h = new HostProgramBuilder();
  build(h);
  const report = verify(link([record(h.build(), { rank: 0, streams: 3 })]));
  expect(report.ok).toBe(true);
  return report.findings;
}

/** out[i] = a[i] + a[i] for every i, on separate streams. */
function chunks(form: "one loop" | "three loops", dependent = false): (h: HostProgramBuilder) => void {
  return (h) => {
    const a = h.input([3, 4]);
    const out = h.tensor([3, 4]);
    h.output(out);
    h.allocate(out);
    const caller = h.getCurrentStream();
    const { mod, numberOfStreams } = h.scalars;
    const work = (i: Parameters<typeof mod>[0]): void => {
      const source = dependent ? h.select(out, 0, 0) : h.select(a, 0, i);
      h.add(source, source, { out: h.select(out, 0, i) });
    };
    if (dependent) h.add(h.select(a, 0, 0), h.select(a, 0, 0), { out: h.select(out, 0, 0) });
    const range = dependent ? { start: 1, stop: 3 } : 3;
    if (form === "one loop") {
      h.forLoop(range, (i) => {
        const stream = h.stream(mod(i, numberOfStreams));
        h.setCurrentStream(stream);
        h.synchronize(caller);
        work(i);
        h.setCurrentStream(caller);
        h.synchronize(stream);
      });
      return;
    }
    h.forLoop(range, (i) => {
      h.setCurrentStream(h.stream(mod(i, numberOfStreams)));
      h.synchronize(caller);
      work(i);
      h.setCurrentStream(caller);
    });
    h.forLoop(range, (i) => h.synchronize(h.stream(mod(i, numberOfStreams))));
  };
}

describe("iterations-serialized", () => {
  test("the one-loop form hides all overlap", () => {
    const found = notesOf(chunks("one loop"));
    expect(found.map(({ code }) => code)).toEqual(["iterations-serialized"]);
    expect(found[0]?.occurrences).toBe(2);
    expect(found[0]?.commands.map(({ streamName, iteration }) => [streamName, iteration])).toEqual([
      ["worker 0", [0]],
      ["worker 1", [1]],
    ]);
  });

  test("synchronized in loops of their own they overlap: nothing", () => {
    expect(notesOf(chunks("three loops"))).toEqual([]);
  });

  test("a gather that queues after a sum: the schedule that the fix names is without it", () => {
    const notes = (schedule: { readonly earlyGathers?: boolean }): readonly Finding[] => {
      const f = new Fusion();
      const [x, up, down] = [f.input([16, 4]), f.input([4, 4]), f.input([4, 4])];
      const y = linear(linear(x, up), down);
      f.output(y);
      for (const tensor of [x, up, down]) tensor.setDeviceMesh(DeviceMesh.range(2));
      x.outerSplit(0, 4);
      for (const [tensor, axis] of [[x, 1] as const, [up, 0] as const, [down, 1] as const])
        tensor.outerSplit(axis, 2).parallelize("DIDx");
      y.outerSplit(0, 4).parallelize("Stream");
      return compile(f, { devices: 2, schedule }).report.findings;
    };
    expect(notes({}).map(({ code, help }) => [code, help])).toEqual([
      ["iterations-serialized", expect.stringContaining("--schedule earlyGathers")],
    ]);
    expect(notes({ earlyGathers: true })).toEqual([]);
  });
});

const redundant = "redundant-synchronization";

describe(redundant, () => {
  test("a stream that is waited for twice", () => {
    const found = notesOf((h) => {
      const a = h.input([4]);
      const out = h.tensor([4]);
      h.output(out);
      h.allocate(out);
      const caller = h.getCurrentStream();
      const side = h.stream(0);
      h.setCurrentStream(side);
      h.synchronize(caller);
      h.add(a, a, { out });
      h.setCurrentStream(caller);
      h.synchronize(side);
      h.synchronize(side);
    });
    expect(found.map(({ code, severity }) => [code, severity])).toEqual([["redundant-synchronization", "note"]]);
    expect(found[0]?.commands[0]?.statement).toMatch(/^Synchronize/);
  });

  test("not of a wait that the compiler wrote, which nobody can remove", async () => {
    const fusion = await exampleFusion("hosts/llama.ts", 8, { BACKWARD: 1 });
    const { hosts, program, report } = compile(fusion, { devices: 8, schedule: {} });
    expect(report.findings).toEqual([]);
    // The same host programs, given as written by hand, by class and rank by rank.
    const codes = (found: readonly Finding[]): readonly string[] => [...new Set(found.map(({ code }) => code))];
    expect(codes(compile((rank) => at(hosts, rank), { devices: 8 }).report.findings)).toEqual([redundant]);
    expect(codes(verify(program, { full: true }).findings)).toEqual([redundant]);
    expect(verify(program, { full: true, notes: "lowered" }).findings).toEqual([]);
  });
});

describe("buffer-leaked", () => {
  test("freed on one rank and kept on another", () => {
    const report = verifyLists(
      buildLists(2, (list, rank) => {
        const [a, t, c] = [list.input([4]), list.temporary([4]), list.output([4])];
        list.alloc(0, t);
        list.copy(0, a, t);
        list.copy(0, t, c);
        if (rank === 0) list.free(0, t);
      }),
    );
    expect(report.ok).toBe(true);
    expect(report.findings.map(({ code, message }) => [code, message])).toEqual([
      ["buffer-leaked", "T1 is freed on rank 0 and kept on rank 1"],
    ]);
  });
});
