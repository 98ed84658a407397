/**
 * Allgather + matmul in the layouts of the back-propagation of matmul + reduce-scatter, as pipelines of every form,
 * against the oracle. Transposed operands are read where they lie; a gathered contraction adds one chunk after the
 * other.
 */
import { describe, expect, it } from "vitest";
import {
  DeviceMesh,
  Fusion,
  type HostProgram,
  link,
  lower,
  matmul,
  MultiDeviceExecutor,
  parse,
  permute,
  print,
  type Program,
  record,
  set,
  sum,
  type Tensor,
  verify,
} from "@braid-compiler/braid";
import type { Statement } from "../../src/host/nodes.ts";
import { compare } from "../../src/oracle/value.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { randomInputs } from "../../src/oracle/random-inputs.ts";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { type Layout, layoutFusion, layouts } from "../support/layout-fusions.ts";
import type { ScheduleOptions } from "../support/point-to-point-schedules.ts";
import { forms } from "./layout-forms.ts";

function linked(
  fusion: Fusion,
  devices: number,
  options: ScheduleOptions,
  edit = (host: HostProgram) => host,
): Program {
  const ranks = Array.from({ length: devices }, (_, rank) => {
    const host = edit(lower(fusion, { rank, accumulate: true, ...options }));
    const { protocol } = options;
    return record(host, { rank, streams: 2, ...(protocol === undefined ? {} : { protocol }) });
  });
  return link(ranks);
}

describe.each(layouts)("$gathered gathered, operands $operands", (layout) => {
  it.each(forms)("%s is free of races and deadlocks, and copies no operand to transpose it", (_, chunks, options) => {
    const devices = 4;
    const fusion = layoutFusion(layout, { devices, chunks });
    const program = linked(fusion, devices, options);
    expect(verify(program).findings).toEqual([]);
    expect(new Set(program.kernels.map(({ kind }) => kind))).toEqual(new Set(["matmul"]));
    // The rank's own chunk is copied into the gathered buffer, and nothing else.
    const copies = program.ranks.flatMap(({ commands }) =>
      commands.filter((command) => command.kind === "copy" && command.source.buffer !== command.destination.buffer),
    );
    const most = options.backend === "cuda" ? devices * devices * (chunks ?? 1) : devices;
    expect(copies.length).toBeLessThanOrEqual(most);
  });

  it("is printed and read again", () => {
    for (const [, chunks, options] of forms) {
      const text = print(lower(layoutFusion(layout, { devices: 2, chunks }), { accumulate: true, ...options }));
      expect(print(parse(text))).toBe(text);
    }
  });
});

describe("back-propagation of matmul + reduce-scatter", () => {
  /**
   * Both gradients, on every device of its own A [M, K] and B [K, N], from that of C, which is scattered over its rows
   * or its columns.
   */
  function gradients(devices: number, scattered: "rows" | "columns"): Fusion {
    const f = new Fusion();
    const [m, n, k] = [4, 3, 2];
    const byRows = scattered === "rows";
    const ofC = f.input([devices, m, n], "float");
    const a = f.input(byRows ? [devices, m, k] : [m, k], "float");
    const b = f.input(byRows ? [k, n] : [devices, k, n], "float");
    const gathered = set(ofC);
    const [left, right] = [permute(a, byRows ? [0, 2, 1] : [1, 0]), permute(b, byRows ? [1, 0] : [0, 2, 1])];
    const [productA, productB] = [matmul(gathered, right), matmul(left, gathered)];
    const ofA = byRows ? productA : sum(productA, [0]);
    const ofB = byRows ? sum(productB, [0]) : productB;
    for (const output of [ofA, ofB]) f.output(output);
    const all = [ofC, a, b, gathered, left, right, productA, productB, ofA, ofB];
    for (const tensor of all) tensor.setDeviceMesh(DeviceMesh.range(devices));
    ofC.axis(0).parallelize("DIDx");
    for (const tensor of [gathered, productA, productB, ofA, ofB]) tensor.axis(0).parallelize("Stream");
    return f;
  }

  it.each(["rows", "columns"] as const)(
    "makes both gradients of one gather, in one loop: C over %s",
    async (scattered) => {
      for (const options of [{}, { backend: "cuda" }, { p2p: "broadcast" }] as const) {
        const host = lower(gradients(4, scattered), { accumulate: true, ...options });
        // A loop that makes the workers wait for the caller, and one over the chunks.
        expect(host.body.filter(({ kind }) => kind === "ForLoop")).toHaveLength(2);
        expect(host.units).toEqual([]);
        for (const devices of [3]) {
          await expectOracle(gradients(devices, scattered), { devices, accumulate: true, ...options });
        }
      }
    },
  );
});

describe("other lowering options", () => {
  it.each([
    { insertReshardingAfter: true },
    { backend: "cuda", interStreamSync: true },
    { shrink: false, deallocate: false },
  ] as const)("%j leave the results", async (options) => {
    for (const layout of layouts) {
      await expectOracle(layoutFusion(layout, { devices: 3, chunks: null }), {
        devices: 3,
        accumulate: true,
        ...options,
      });
    }
  });
});

const contraction: Layout = { gathered: "K", operands: "TN" };

describe("a gathered contraction", () => {
  it.each(["double", "half", "int"] as const)("adds chunks in %s within the bounds", async (dtype) => {
    for (const chunks of [null, 5]) {
      const fusion = layoutFusion(contraction, { devices: 4, chunks, dtype, m: 6, n: 9, k: 7 });
      await expectOracle(fusion, { devices: 4, streams: 3, accumulate: true });
    }
  });

  it("rounds bfloat16 once per chunk, within the oracle's bounds", async () => {
    const devices = 8;
    const fusion = layoutFusion(contraction, { devices, chunks: null, dtype: "bfloat16", m: 12, n: 10, k: 16 });
    const shapes = [
      { dtype: "bfloat16", shape: [devices, 16, 12] },
      { dtype: "bfloat16", shape: [devices, 16, 10] },
    ] as const;
    const inputs = randomInputs(shapes, createRandom(5), "uniform");
    const expected = evaluateFusion(fusion.data(), inputs);
    const executor = await MultiDeviceExecutor.create(fusion, { devices, on: "cpu", accumulate: true });
    const [output] = await executor.run(inputs);
    await executor.close();
    const comparison = compare(at([output], 0) as Tensor, at(expected.outputs, 0), at(expected.bounds, 0));
    expect(comparison.firstBad).toBeNull();
    // The bounds are no looser than a few roundings of the largest sums.
    expect(comparison.maxRatio).toBeGreaterThan(0.01);
  });

  it("adds in one order: without the wait for the iteration before it, chunks race", () => {
    const withoutOrder = (body: readonly Statement[]): readonly Statement[] =>
      body.map((statement): Statement => {
        if (statement.kind === "ForLoop") return { ...statement, body: withoutOrder(statement.body) };
        if (statement.kind !== "IfThenElse") return statement;
        const adds = statement.else.some((inner) => inner.kind === "Matmul" && inner.accumulate === true);
        return adds ? { ...statement, else: statement.else.filter(({ kind }) => kind !== "Synchronize") } : statement;
      });
    const fusion = layoutFusion(contraction, { devices: 3, chunks: null });
    const edited = linked(fusion, 3, {}, (host) => ({ ...host, body: withoutOrder(host.body) }));
    const { ok, findings } = verify(edited);
    expect(ok).toBe(false);
    expect(new Set(findings.map(({ code }) => code))).toEqual(new Set(["data-race"]));
    expect(verify(linked(fusion, 3, {})).ok).toBe(true);
  });
});
