/**
 * nvFuser's StreamTest of test_host_irs.cpp, whose other tests are in test/conformance/host-irs.test.ts; and outputs
 * that are views when the program ends.
 */
import { describe, expect, it } from "vitest";
import { HostProgramBuilder, type HostProgram, record } from "@braid-compiler/braid";
import { counted, runPrograms } from "../record/run-programs.ts";

describe("streams", () => {
  const streamsOf = (program: HostProgram): readonly string[] =>
    record(program, { rank: 0 }).streams.map(({ role }) => role);

  it("ByIndex: equal indices are one stream", () => {
    const h = new HostProgramBuilder();
    for (const index of [2, 2, h.scalars.add(1, 2)]) h.setCurrentStream(h.stream(index));
    expect(streamsOf(h.build())).toEqual(["caller", "worker", "worker"]);
  });

  it("HostIrSetStream: a stream without an index is one of its own", () => {
    const h = new HostProgramBuilder();
    for (const stream of [h.stream(), h.stream(), h.stream(0)]) h.setCurrentStream(stream);
    expect(streamsOf(h.build())).toEqual(["caller", "worker", "worker", "worker"]);
  });

  it("HostIrDefaultStream: before any SetCurrentStream the caller's stream is current", () => {
    const h = new HostProgramBuilder();
    const x = h.input([2]);
    h.output(h.add(x, x));
    const { commands, streams } = record(h.build(), { rank: 0 });
    expect(streams.map(({ role }) => role)).toEqual(["caller"]);
    expect(commands).toMatchObject([{ kind: "launch", stream: 0 }]);
  });

  it("HostIrGetCurrentStream: what was current is current again", () => {
    const h = new HostProgramBuilder();
    const caller = h.getCurrentStream();
    h.setCurrentStream(h.stream());
    h.setCurrentStream(caller);
    h.allocate(h.tensor([2]));
    expect(record(h.build(), { rank: 0 }).commands).toMatchObject([{ kind: "alloc", stream: 0 }]);
  });
});

describe("outputs that end as views", () => {
  it("are copied when the program ends, after what is written later", async () => {
    const h = new HostProgramBuilder();
    const x = h.input([2, 3]);
    const whole = h.tensor([2, 3]);
    h.output(h.select(whole, 0, 1));
    h.output(whole);
    h.set(x, { out: whole });
    const [[row, all] = []] = await runPrograms([h.build()], { inputs: [[counted([2, 3])]] });
    expect(row?.data).toEqual(Float32Array.of(3, 4, 5));
    expect(all?.data).toEqual(Float32Array.of(0, 1, 2, 3, 4, 5));
  });

  it("are all read before any is overwritten", async () => {
    const h = new HostProgramBuilder();
    const [x, others] = [h.input([2, 3]), h.input([2, 2, 3])];
    const whole = h.tensor([2, 3]);
    h.output(whole);
    h.set(x, { out: whole });
    h.output(h.select(whole, 0, 1));
    h.select(others, 0, 1, { out: whole });
    const inputs = [[counted([2, 3]), counted([2, 2, 3], (i) => 100 + i)]];
    const [[all, row] = []] = await runPrograms([h.build()], { inputs });
    expect(all?.data).toEqual(Float32Array.of(106, 107, 108, 109, 110, 111));
    expect(row?.data).toEqual(Float32Array.of(3, 4, 5));
  });
});
