/**
 * nvFuser's test_host_irs.cpp on one rank: programs written by hand, recorded, linked and run under several schedules. Loops, branches
 * and several ranks: test/record/hand-written.test.ts.
 */
import { describe, expect, it } from "vitest";
import { add, Fusion, HostProgramBuilder, type HostProgram, record, sum, type TensorView } from "braid";
import { counted, runPrograms, type RunSetting } from "../record/run-programs.ts";

type Elements = readonly number[];

/** The elements of every rank's only output. */
async function run(programs: readonly HostProgram[], setting: RunSetting): Promise<readonly Elements[]> {
  const outputs = await runPrograms(programs, setting);
  return outputs.map(([output]) => Array.from(output?.data ?? [], Number));
}

async function runOne(program: HostProgram, inputs: RunSetting["inputs"][number]): Promise<Elements> {
  const [elements = []] = await run([program], { inputs: [inputs] });
  return elements;
}

function built(build: (h: HostProgramBuilder) => TensorView): HostProgram {
  const h = new HostProgramBuilder();
  h.output(build(h));
  return h.build();
}

const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const double = new Fusion();
const doubled = double.input([null, null]);
double.output(add(doubled, doubled));
const rowSum = new Fusion();
rowSum.output(sum(rowSum.input([null, null]), [1]));

function only(tensors: readonly TensorView[]): TensorView {
  const [tensor] = tensors;
  if (tensor === undefined) throw new Error("one tensor");
  return tensor;
}

describe("host units", () => {
  const inputs = [counted([4, 3])];
  const sums = (factor: number): number[] => range(4).map((row) => factor * (9 * row + 3));

  it("SingleFusion", async () => {
    const program = built((h) => only(h.postOnStream(rowSum, [h.input([null, 3])])));
    expect(await run([program], { inputs: [inputs], sizes: { i0: 4 } })).toEqual([sums(1)]);
  });

  it("TwoFusions", async () => {
    const program = built((h) => only(h.postOnStream(rowSum, h.postOnStream(double, [h.input([4, 3])]))));
    expect(await runOne(program, inputs)).toEqual(sums(2));
  });

  it("PreAllocatedOutputs", async () => {
    const program = built((h) => {
      const out = h.allocate(h.tensor([4, 3]));
      h.postOnStream(double, [h.input([4, 3])], [out]);
      return h.set(out);
    });
    expect(await runOne(program, inputs)).toEqual(range(12).map((i) => 2 * i));
  });
});

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

  it("HostIrGetCurrentStream: what was current is current again", () => {
    const h = new HostProgramBuilder();
    const caller = h.getCurrentStream();
    h.setCurrentStream(h.stream());
    h.setCurrentStream(caller);
    h.allocate(h.tensor([2]));
    expect(record(h.build(), { rank: 0 }).commands).toMatchObject([{ kind: "alloc", stream: 0 }]);
  });
});

describe("memory", () => {
  it("AllocationTest.inHostForLoop", async () => {
    const program = built((h) => {
      const [x, y] = [h.input([4, 2]), h.tensor([4, 2])];
      h.forLoop(4, (i) => {
        const scratch = h.allocate(h.tensor([2]), { zeroInit: true });
        const slice = h.select(x, 0, i);
        h.add(slice, scratch, { out: scratch });
        h.add(scratch, slice, { out: h.select(y, 0, i) });
        h.deallocate(scratch);
      });
      return y;
    });
    expect(await runOne(program, [counted([4, 2])])).toEqual(range(8).map((i) => 2 * i));
  });
});

describe("computations", () => {
  const matrix = counted([4, 3]);

  it("SlicingTensor", async () => {
    const program = built((h) => h.slice(h.input([4, 3]), [0, 1], [4, 3]));
    expect(await runOne(program, [matrix])).toEqual([1, 2, 4, 5, 7, 8, 10, 11]);
  });

  it("SelectingTensor, by the op and by HirAliasSelect", async () => {
    for (const build of [
      (h: HostProgramBuilder) => h.selectOp(h.input([4, 3]), 1, 2),
      (h: HostProgramBuilder) => h.select(h.input([4, 3]), 1, 2),
    ]) {
      expect(await runOne(built(build), [matrix])).toEqual([2, 5, 8, 11]);
    }
  });

  it("SimpleReshape, there and back", async () => {
    const program = built((h) => h.reshape(h.mul(h.reshape(h.input([4, 3]), [12]), h.input([12])), [3, 4]));
    expect(await runOne(program, [matrix, counted([12], () => 3)])).toEqual(range(12).map((i) => 3 * i));
  });

  it("Sum to a scalar", async () => {
    expect(
      await runOne(
        built((h) => h.sum(h.input([12]), [0])),
        [counted([12])],
      ),
    ).toEqual([66]);
  });

  it("HirSet, HirBinaryOp", async () => {
    const program = built((h) => {
      const [a, b] = [h.input([6]), h.input([6])];
      const out = h.tensor([6]);
      h.set(a, { out });
      h.add(out, b, { out });
      h.mul(out, b, { out });
      h.sub(out, b, { out });
      return h.div(out, b, { out });
    });
    const inputs = [counted([6]), counted([6], () => 2)];
    expect(await runOne(program, inputs)).toEqual(range(6).map((i) => ((i + 2) * 2 - 2) / 2));
  });

  it.each(["MatmulHostIr", "MatmulHostIrOut"])("%s", async (name) => {
    const program = built((h) => {
      const [a, b] = [h.input([2, 3]), h.input([3, 2])];
      return name === "MatmulHostIr"
        ? h.matmul(a, b)
        : h.set(h.matmul(a, b, { out: h.allocate(h.tensor([2, 2, { reduced: 3 }])) }));
    });
    expect(await runOne(program, [counted([2, 3]), counted([3, 2])])).toEqual([10, 13, 28, 40]);
  });

  it("LinearHostIr, with a bias", async () => {
    const program = built((h) => h.linear(h.input([2, 3]), h.input([2, 3]), h.input([2])));
    expect(await runOne(program, [counted([2, 3]), counted([2, 3]), counted([2])])).toEqual([5, 15, 14, 51]);
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
