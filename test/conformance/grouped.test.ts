/** Grouped matmuls on devices and in loops: the oracle's results, and what they communicate. */
import { describe, expect, it } from "vitest";
import {
  cat,
  DeviceMesh,
  DiagnosticError,
  full,
  Fusion,
  gradients,
  groupedMatmul,
  lower,
  mul,
  print,
  MultiDeviceExecutor,
  sum,
  Tensor,
  type TensorView,
  unsqueeze,
} from "@braid-compiler/braid";
import { createCpuBackend } from "@braid-compiler/braid/cpu";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { diagnosticOf } from "../ir/expect-diagnostic.ts";
import { collectivesOf } from "../support/collectives-of.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { expectRoundTrip } from "../support/round-trip.ts";

interface Inputs {
  readonly f: Fusion;
  readonly x: TensorView;
  readonly w: TensorView;
}

const onDevices = (tensor: TensorView, axis: number, devices: number): void => {
  tensor.outerSplit(axis, devices).parallelize("DIDx");
};

/** The ends of the groups, as a tensor of the Fusion. */
function endsOf(f: Fusion, values: readonly number[]): TensorView {
  return cat(values.map((value) => full(f, [1], value, "int64")));
}

/** 12 rows of three groups: the last two rows are in none. */
function program(devices: number, place: (inputs: Inputs, output: TensorView) => void): Fusion {
  const f = new Fusion();
  const inputs = { f, x: f.input([12, 8]), w: f.input([3, 8, 6]) };
  const output = groupedMatmul(inputs.x, inputs.w, endsOf(f, [5, 5, 10]));
  f.output(output);
  for (const tensor of [inputs.x, inputs.w]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  place(inputs, output);
  return f;
}

/** Buffers of 4 rows of each of `experts`, of which 0 to 4 are used. */
function buffers(experts: number, devices: number, place: (inputs: Inputs, output: TensorView) => void): Fusion {
  const f = new Fusion();
  const inputs = { f, x: f.input([experts, 4, 8]), w: f.input([experts, 1, 8, 6]) };
  const counts = endsOf(
    f,
    Array.from({ length: experts }, (_, i) => (i * 3) % 5),
  );
  const output = groupedMatmul(inputs.x, inputs.w, unsqueeze(counts, 1));
  f.output(output);
  for (const tensor of [inputs.x, inputs.w]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  place(inputs, output);
  return f;
}

async function check(f: Fusion, devices: number, collectives: string): Promise<void> {
  expect(collectivesOf(f, devices)).toBe(collectives);
  expectRoundTrip(lower(f), [{ rank: 0, sizes: {} }]);
  await expectOracle(f, { devices, machineAlone: true });
}

describe("a grouped matmul", () => {
  it("keeps the sharding of the matrices' columns", async () => {
    const f = program(2, ({ w }) => {
      onDevices(w, 2, 2);
    });
    await check(f, 2, "");
  });

  it("of shares of the contracted axis is a sum over devices", async () => {
    const f = program(2, ({ x, w }) => {
      onDevices(x, 1, 2);
      onDevices(w, 1, 2);
    });
    await check(f, 2, "Allreduce 1");
  });

  it("of shares of the contracted axis reads ends whole that are cut along the same devices", async () => {
    const f = new Fusion();
    const [x, w] = [f.input([12, 8]), f.input([4, 8, 6])];
    const ends = endsOf(f, [5, 5, 10, 12]);
    f.output(groupedMatmul(x, w, ends));
    for (const tensor of [x, w, ends]) tensor.setDeviceMesh(DeviceMesh.range(2));
    onDevices(w, 1, 2);
    onDevices(ends, 0, 2);
    await check(f, 2, "Allgather 1, Allreduce 1");
  });

  it("gathers rows that are cut: the ends count all of them", async () => {
    const f = program(3, ({ x }) => {
      onDevices(x, 0, 3);
    });
    await check(f, 3, "Allgather 1");
  });

  it.each([
    ["evenly", 8, 4],
    ["unevenly", 8, 3],
  ])("of buffers of experts lies with the experts, %s", async (_, experts, devices) => {
    const f = buffers(experts, devices, ({ x, w }) => {
      for (const tensor of [x, w]) onDevices(tensor, 0, devices);
    });
    await check(f, devices, "");
  });

  it("loops over the buffers", async () => {
    const f = buffers(4, 2, ({ x, w }, output) => {
      for (const tensor of [x, w]) onDevices(tensor, 2, 2);
      for (const tensor of [output]) tensor.axis(0).parallelize("Stream");
    });
    await check(f, 2, "Allreduce 1");
  });

  it("does not loop over columns", () => {
    const f = program(2, (_, output) => {
      output.axis(1).parallelize("Stream");
    });
    expect(diagnosticOf(() => lower(f)).code).toBe("stream-on-matmul-axis");
  });

  it("has gradients that lie with the experts", async () => {
    const f = new Fusion();
    const [x, w] = [f.input([4, 3, 8]), f.input([4, 1, 8, 6])];
    const y = groupedMatmul(x, w, unsqueeze(endsOf(f, [0, 2, 3, 1]), 1));
    for (const output of gradients(f, { of: [sum(mul(y, y), [0, 1, 2])], wrt: [x, w] }))
      if (output !== null) f.output(output);
    for (const tensor of [x, w]) {
      tensor.setDeviceMesh(DeviceMesh.range(2));
      onDevices(tensor, 0, 2);
    }
    await check(f, 2, "");
    // The gradient of x reads the matrices where they lie.
    expect(print(lower(f))).toMatch(/grouped_matmul\( T\d+_g_float\S+ .*, permute\( T1_.*, order = \{0, 1, 3, 2\} \)/);
  });
});

it("ends that fall are refused by the oracle too", () => {
  const f = new Fusion();
  const [x, w] = [f.input([4, 2]), f.input([2, 2, 2])];
  f.output(groupedMatmul(x, w, endsOf(f, [3, 2])));
  const inputs = [Tensor.zeros([4, 2]), Tensor.zeros([2, 2, 2])];
  expect(diagnosticOf(() => evaluateFusion(f.data(), inputs))).toMatchObject({
    code: "group-ends-invalid",
    found: "ends 3, 2 of 4 rows",
  });
});

it.each(["threads", "machine"] as const)(
  "ends that fall end a run with the rank and the command, by %s",
  async (kind) => {
    const f = new Fusion();
    const [x, w, ends] = [f.input([2, 4, 2]), f.input([2, 2, 2, 2]), f.input([2, 2], "int64")];
    const y = groupedMatmul(x, w, ends);
    f.output(y);
    for (const tensor of [x, w, ends, y]) {
      tensor.setDeviceMesh(DeviceMesh.range(2));
      onDevices(tensor, 0, 2);
    }
    const on = createCpuBackend(kind === "machine" ? { interleaving: { kind: "seed", seed: 1 } } : {});
    const executor = await MultiDeviceExecutor.create(f, { devices: 2, on });
    try {
      const given = [Tensor.zeros([2, 4, 2]), Tensor.zeros([2, 2, 2, 2]), Tensor.from([[1, 4], [3, 2]], "int64")]; // prettier-ignore
      const failure = await executor.run(given).catch((error: unknown) => error);
      const [found] = failure instanceof DiagnosticError ? failure.diagnostics : [];
      expect(found).toMatchObject({ code: "group-ends-invalid", found: "ends 3, 2 of 4 rows" });
      expect(JSON.stringify(found?.place)).toMatch(/groupedMatmul, .*rank 1/u);
    } finally {
      await executor.close();
    }
  },
);
