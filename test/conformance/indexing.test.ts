/** Ops that read and add at indices, on devices and in loops: the oracle's results, and what they communicate. */
import { describe, expect, it } from "vitest";
import {
  add,
  DeviceMesh,
  dynamicSlice,
  dynamicUpdate,
  embedding,
  expand,
  Fusion,
  gather,
  indexSelect,
  linear,
  lower,
  reshape,
  scatterAdd,
  slice,
  Tensor,
  type TensorView,
  unsqueeze,
} from "@braid-compiler/braid";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { diagnosticOf } from "../ir/expect-diagnostic.ts";
import { collectivesOf } from "../support/collectives-of.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { shapeCases } from "../gpu/shape-cases.ts";
import { expectRoundTrip } from "../support/round-trip.ts";

interface Inputs {
  readonly table: TensorView;
  readonly index: TensorView;
  readonly source: TensorView;
}

function program(
  devices: number,
  build: (inputs: Inputs) => TensorView,
  place: (inputs: Inputs, output: TensorView) => void,
  rows = 36,
): Fusion {
  const f = new Fusion();
  const inputs = { table: f.input([rows, 8]), index: f.input([8], "int64"), source: f.input([8, 8]) };
  const output = build(inputs);
  f.output(output);
  for (const tensor of Object.values(inputs)) tensor.setDeviceMesh(DeviceMesh.range(devices));
  place(inputs, output);
  return f;
}

async function check(f: Fusion, devices: number, collectives: string): Promise<void> {
  expect(collectivesOf(f, devices)).toBe(collectives);
  expectRoundTrip(lower(f), [{ rank: 0, sizes: {} }]);
  await expectOracle(f, { devices, machineAlone: true });
}

const embedded = ({ table, index, source }: Inputs): TensorView => add(embedding(table, index), source);

describe("an embedding", () => {
  it("keeps the sharding of its indices", async () => {
    const f = program(2, embedded, ({ index }) => {
      index.outerSplit(0, 2).parallelize("DIDx");
    });
    await check(f, 2, "");
  });

  it("keeps the sharding of the table's columns", async () => {
    const f = program(2, embedded, ({ table }) => {
      table.outerSplit(1, 2).parallelize("DIDx");
    });
    await check(f, 2, "");
  });

  it("runs in chunks of indices, before a linear", async () => {
    const f = program(
      2,
      ({ table, index, source }) => linear(embedding(table, index), source),
      ({ index }) => {
        index.outerSplit(0, 2).parallelize("DIDx");
        index.outerSplit(1, 2).parallelize("Stream");
      },
    );
    await check(f, 2, "");
  });

  it("sums what devices read of a table whose rows are cut", async () => {
    const cut = ({ table }: Inputs): void => void table.outerSplit(0, 3).parallelize("DIDx");
    await check(program(3, embedded, cut), 3, "Allreduce 1");
    const scattered = program(2, embedded, ({ table, index, source }) => {
      table.outerSplit(0, 2).parallelize("DIDx");
      for (const tensor of [index, source]) tensor.outerSplit(0, 2).parallelize("DIDx");
    });
    await check(scattered, 2, "Allgather 1, ReduceScatter 1");
  });

  it("sums chunk by chunk, on a mesh of two axes too", async () => {
    const chunked = program(2, embedded, ({ table, index }) => {
      table.outerSplit(0, 2).parallelize("DIDx");
      index.outerSplit(0, 2).parallelize("Stream");
    });
    await check(chunked, 2, "Allreduce 1");
    const f = new Fusion();
    const [table, index] = [f.input([36, 8]), f.input([8], "int64")];
    const y = embedding(table, index);
    f.output(y);
    for (const tensor of [table, index, y]) tensor.setDeviceMesh(new DeviceMesh([[0, 1], [2, 3]])); // prettier-ignore
    table.outerSplit(0, 2).parallelize("DIDx");
    table.outerSplit(2, 2).parallelize("DIDy");
    for (const tensor of [y]) tensor.outerSplit(1, 2).parallelize("DIDy");
    await check(f, 4, "Allreduce 2");
  });

  it("gathers a table that has fewer bytes than a sum of what is read", async () => {
    const cut = ({ table }: Inputs): void => void table.outerSplit(0, 3).parallelize("DIDx");
    await check(program(3, embedded, cut, 12), 3, "Allgather 1");
    await check(program(3, embedded, cut, 24), 3, "Allreduce 1");
  });

  it("gathers a table whose rows are cut unevenly", async () => {
    const f = program(5, embedded, ({ table }) => {
      table.outerSplit(0, 5).parallelize("DIDx");
    });
    await check(f, 5, "Allgather 1");
  });

  it("reads columns of a cut axis at indices of any rank", async () => {
    const build = ({ table, index }: Inputs): TensorView =>
      indexSelect(table, 1, reshape(slice(index, [0], [2]), [1, 2]));
    const f = program(4, build, ({ table }) => void table.outerSplit(1, 4).parallelize("DIDx"));
    await check(f, 4, "Allreduce 1");
  });
});

describe("gather", () => {
  it("sums what devices read along a cut axis", async () => {
    const build = ({ source, index }: Inputs): TensorView => gather(source, 1, unsqueeze(index, 1));
    const f = program(2, build, ({ source }) => void source.outerSplit(1, 2).parallelize("DIDx"));
    await check(f, 2, "Allreduce 1");
  });

  it("keeps the sharding of rows", async () => {
    const f = program(
      2,
      ({ source, index }) => gather(source, 1, unsqueeze(index, 1)),
      ({ source }) => {
        source.outerSplit(0, 2).parallelize("DIDx");
      },
    );
    await check(f, 2, "");
  });
});

describe("scatterAdd", () => {
  const added = ({ table, index, source }: Inputs): TensorView =>
    scatterAdd(table, 0, expand(unsqueeze(index, 1), [-1, 8]), source);

  it("keeps the sharding of columns", async () => {
    const f = program(2, added, ({ table, source }) => {
      for (const tensor of [table, source]) tensor.outerSplit(1, 2).parallelize("DIDx");
    });
    await check(f, 2, "");
  });

  it("sums what devices add of a cut source, or gathers it where that has fewer bytes", async () => {
    const cut = ({ source }: Inputs): void => void source.outerSplit(0, 2).parallelize("DIDx");
    await check(program(2, added, cut, 2), 2, "Allreduce 1");
    await check(program(2, added, cut), 2, "Allgather 1");
  });

  it("adds to each device's share of a cut tensor", async () => {
    const f = program(3, added, ({ table }, output) => {
      for (const tensor of [table, output]) tensor.outerSplit(0, 3).parallelize("DIDx");
    });
    await check(f, 3, "");
  });
});

describe("slices and updates at a position of the run", () => {
  const cache = (start: (f: Fusion) => TensorView, size: number): Fusion => {
    const f = new Fusion();
    const [x, update] = [f.input([4, 12, 6]), f.input([4, size, 6])];
    const first = start(f);
    f.output(dynamicUpdate(x, 1, first, update));
    f.output(dynamicSlice(x, 1, first, 3));
    for (const tensor of [x, update]) {
      tensor.setDeviceMesh(DeviceMesh.range(2));
      tensor.outerSplit(0, 2).parallelize("DIDx");
    }
    return f;
  };

  it.each([1, 2])("of %i elements, by rows on devices", async (size) => {
    await check(
      cache((f) => f.input([], "int"), size),
      2,
      "",
    );
    await check(
      cache((f) => f.input([4, 1, 1], "int64"), size),
      2,
      "",
    );
  });

  it("does not write before the axis, ends past it, and reads 0 in both", () => {
    const f = new Fusion();
    const [x, start, update] = [f.input([4]), f.input([], "int64"), f.input([2])];
    f.output(dynamicUpdate(x, 0, start, update));
    f.output(dynamicUpdate(x, 0, start, slice(update, [0], [1])));
    f.output(dynamicSlice(x, 0, start, 2));
    const at = (position: number): unknown => {
      const given = [Tensor.from([1, 2, 3, 4]), Tensor.from(position, "int64"), Tensor.from([8, 9])];
      return evaluateFusion(f.data(), given).outputs.map(({ data }) => Array.from(data, Number));
    };
    expect(at(1)).toEqual([[1, 8, 9, 4], [1, 8, 3, 4], [2, 3]]); // prettier-ignore
    expect(at(2)).toEqual([[1, 2, 8, 9], [1, 2, 8, 4], [3, 4]]); // prettier-ignore
    expect(at(-1)).toEqual([[9, 2, 3, 4], [1, 2, 3, 4], [0, 1]]); // prettier-ignore
    for (const past of [3, 7]) expect(diagnosticOf(() => at(past)).code).toBe("position-past-end");
  });

  it("refuses other axes", () => {
    const f = new Fusion();
    const [x, start] = [f.input([4, 6]), f.input([], "int64")];
    for (const update of [f.input([4, 3]), f.input([2, 3]), f.input([6])]) {
      const found = diagnosticOf(() => dynamicUpdate(x, 0, start, update));
      expect(found).toMatchObject({ code: "shape-mismatch", message: "the update has other axes than the tensor" });
    }
    expect(diagnosticOf(() => dynamicSlice(x, 0, f.input([4, 6], "int"), 2)).code).toBe("shape-mismatch");
    expect(diagnosticOf(() => dynamicSlice(x, 0, f.input([]), 2)).code).toBe("dtype-mismatch");
  });
});

it.each(shapeCases)("$name", async ({ build }) => {
  await expectOracle(build(), { devices: 1, machineAlone: true });
});
