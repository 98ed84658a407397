/** The schedule chosen on machines that favour one form or another. The chosen schedule has the oracle's result. */
import { describe, expect, it } from "vitest";
import { DeviceMesh, DiagnosticError, Fusion, linear, matmul, sum } from "@braid-compiler/braid";
import { chooseForm } from "../../../bench/compare/choose-form.ts";
import { buildPrimitive } from "../../../bench/compare/primitives.ts";
import { choose } from "../../../src/tune/choose/choose.ts";
import { decide } from "../../../src/tune/choose/decide.ts";
import { candidateStreams, serial as serialCandidate } from "../../../src/tune/choose/candidates.ts";
import { expectOracle } from "../../support/expect-oracle.ts";
import { machine, rate } from "./round-machine.ts";

function allgatherMatmul(devices: number, m: number, n: number, k: number): Fusion {
  const f = new Fusion();
  const a = f.input([devices, m / devices, k], "bfloat16");
  const w = f.input([n, k], "bfloat16");
  const c = linear(a, w);
  f.output(c);
  for (const tensor of [a, w, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  a.axis(0).parallelize("DIDx");
  c.axis(0).parallelize("Stream");
  return f;
}

/** Partial products that are sent to the device that keeps their rows. */
function matmulReduceScatter(devices: number, m: number, n: number, k: number): Fusion {
  const f = new Fusion();
  const a = f.input([devices, devices, m / devices, k], "bfloat16");
  const b = f.input([devices, 1, k, n], "bfloat16");
  const partial = matmul(a, b);
  const c = sum(partial, [0]);
  f.output(c);
  for (const tensor of [a, b, partial, c]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  for (const tensor of [a, b]) tensor.axis(0).parallelize("DIDx");
  for (const tensor of [partial, c]) tensor.axis(1).parallelize("DIDx");
  a.axis(1).parallelize("Stream");
  partial.axis(0).parallelize("Stream");
  return f;
}

it("gathers early where scatters would hold up the gathers of later chunks", () => {
  const f = new Fusion();
  const [x, w1, w2] = [
    f.input([8192, 8192], "bfloat16"),
    f.input([16_384, 8192], "bfloat16"),
    f.input([8192, 16_384], "bfloat16"),
  ];
  const hidden = linear(x, w1);
  f.output(linear(hidden, w2));
  for (const tensor of [x, w1, w2]) tensor.setDeviceMesh(DeviceMesh.range(2));
  x.outerSplit(0, 4);
  x.outerSplit(1, 2).parallelize("DIDx");
  w1.outerSplit(0, 2).parallelize("DIDx");
  w2.outerSplit(1, 2).parallelize("DIDx");
  hidden.outerSplit(0, 4).parallelize("Stream");
  const { chosen, considered } = choose(f, { devices: 2, backend: "nccl" }, machine);
  expect(chosen.name).toBe("collectives in chunks, early gathers");
  const plain = considered.find(({ candidate }) => candidate.name === "collectives in chunks");
  expect(plain?.milliseconds).toBeGreaterThan(1.03 * (considered[0]?.milliseconds ?? 0));
});

describe("choose of matmul + reduce-scatter", () => {
  const after = { insertReshardingAfter: true };

  it("knows loops by get and by put", () => {
    const { considered } = choose(matmulReduceScatter(4, 512, 128, 64), { devices: 4, ...after }, machine);
    const names = considered.map(({ candidate: { name } }) => name);
    expect(names).toContain("serial");
    expect(names.some((name) => name.startsWith("put"))).toBe(true);
    expect(names.some((name) => name.startsWith("get"))).toBe(true);
  });

  it("stays serial where nothing is surely faster", () => {
    const considered = (times: readonly (readonly [name: string, milliseconds: number, margin?: number])[]) =>
      times.map(([name, milliseconds, margin = 0.08]) => ({
        candidate: name === "serial" ? serialCandidate : { ...serialCandidate, name, lowering: {} },
        milliseconds,
        margin,
        assumptions: [],
      }));
    expect(
      decide(
        considered([
          ["put", 1],
          ["serial", 1.07],
        ]),
      ).picked.candidate.name,
    ).toBe("serial");
    expect(
      decide(
        considered([
          ["put", 1],
          ["serial", 1.09],
        ]),
      ).picked.candidate.name,
    ).toBe("put");
    // What is simulated better may be chosen for less.
    expect(
      decide(
        considered([
          ["put", 1],
          ["peers' memory", 1.01, 0.05],
          ["serial", 1.07],
        ]),
      ).picked.candidate.name,
    ).toBe("peers' memory");
    const { reason } = decide(
      considered([
        ["get", 1.01],
        ["put", 1],
        ["serial", 1.02],
      ]),
    );
    expect(reason).toBe("serial: 1.02 ms, nearly the fastest of 3 simulated schedules; next put 1.00 ms");
    const guessed = considered([
      ["put", 1],
      ["get", 2],
    ]).map((each, i) => ({ ...each, assumptions: [i === 0 ? "b is timed as c" : "a is timed as c"] }));
    expect(decide(guessed).assumptions).toEqual(["a is timed as c", "b is timed as c"]);
  });

  it("chooses what has the oracle's result", async () => {
    const fusion = matmulReduceScatter(2, 32, 8, 16);
    const { considered } = choose(fusion, { devices: 2, ...after }, machine);
    for (const { candidate } of considered.filter((_, i) => i % 8 === 0)) {
      const { lowering, schedule } = candidate;
      const options = { devices: 2, ...after, ...lowering, streams: candidateStreams, schedule };
      await expectOracle(fusion, options);
    }
  }, 30_000);
});

describe("choose of matmul + all-reduce in chunks", () => {
  const problem = { primitive: "tp-allreduce", devices: 4, m: 8192, n: 8192, k: 8192, dtype: "bfloat16" } as const;
  const fusion = buildPrimitive("collective", problem, { chunks: 4, outputs: 1 });
  const lowering = { insertReshardingAfter: true, backend: "cuda" } as const;
  const namesWith = (...factors: readonly number[]): readonly string[] => {
    const margins = { m: [1024, 2048, 4096], n: [8192], k: [8192], factors, room: [0, 0, 0] };
    const profile = { ...machine, reductionsInPeers: rate(5, 3.2e5), margins };
    const { considered } = choose(fusion, { devices: 4, ...lowering }, profile);
    return considered.map(({ candidate }) => candidate.name).filter((name) => name !== "no loop");
  };

  it("leaves room for kernels in peers' memory where that costs little, and does not where it costs much", () => {
    // Gemms are of 2048 rows.
    expect(namesWith(2, 1.04, 2)).toEqual(["peers' memory", "peers' memory, no margin"]);
    expect(namesWith(1.04, 2, 1.04)).toEqual(["peers' memory, no margin", "peers' memory"]);
  });

  it("makes no loop where a chunk's GEMM takes about as long as the whole", () => {
    // GEMMs of fewer rows take as long as those of 512, the fewest that the machine has.
    const few = buildPrimitive("collective", { ...problem, m: 512 }, { chunks: 4, outputs: 1 });
    const { chosen } = choose(few, { devices: 4, ...lowering }, { ...machine, reductionsInPeers: rate(5, 3.2e5) });
    expect(chosen.name).toBe("no loop");
    expect(chosen.lowering.overlap).toBe(false);
  });

  it("takes one kernel in peers' memory after the GEMM of a primitive with few rows if the library is slower", () => {
    const formWith = (library: number): unknown => {
      const transfers = [{ type: "Allreduce", ranks: 4, timings: rate(library, 2.2e5) }] as const;
      const profile = { ...machine, transfers, reductionsInPeers: rate(8, 3.2e5) };
      const few = { ...problem, m: 1 };
      const { shape, compilation } = chooseForm({}, few, { insertReshardingAfter: true }, profile);
      const { backend, overlap } = compilation.options;
      return [shape.form, backend, overlap];
    };
    expect(formWith(15)).toEqual(["serial", "cuda", false]);
    expect(formWith(6)).toEqual(["serial", "nccl", false]);
  });
});

describe("choose", () => {
  it("overlaps where communication can hide, and is never slower than serial", () => {
    const { chosen, considered, reason } = choose(allgatherMatmul(4, 32_768, 8192, 16_384), { devices: 4 }, machine);
    expect(chosen.lowering.backend).toBe("cuda");
    const serial = considered.find(({ candidate }) => candidate === serialCandidate);
    const product = (2 * 32_768 * 8192 * 16_384) / 720e9;
    expect(serial?.milliseconds).toBeGreaterThan(product + 1);
    expect(considered[0]?.milliseconds).toBeLessThan(product * 1.05);
    expect(reason).toContain(chosen.name);
    expect(reason).toContain("serial ");
    expect(reason.split("\n")).toHaveLength(1);
  });

  it("stays serial where signals and waits cost more than they hide", () => {
    const slow = { ...machine, costs: { ...machine.costs, signal: 5000 } };
    const { chosen, considered } = choose(allgatherMatmul(4, 2048, 1024, 1024), { devices: 4 }, slow);
    expect(chosen).toBe(serialCandidate);
    for (const name of ["get", "put"]) {
      const own = considered.filter(({ candidate }) => candidate.name.startsWith(name));
      expect(own.length).toBeGreaterThan(0);
      for (const { milliseconds } of own) expect(milliseconds).toBeGreaterThan(10);
    }
  });

  it("keeps to what the user has set", () => {
    const { considered } = choose(allgatherMatmul(4, 2048, 1024, 1024), { devices: 4, backend: "nccl" }, machine);
    const backends = considered.map(({ candidate }) => candidate.lowering.backend);
    expect(new Set(backends)).toEqual(new Set(["nccl"]));
  });

  it("refuses lowering options that no candidate has", () => {
    const options = { devices: 4, backend: "ucc" } as const;
    expect(() => choose(allgatherMatmul(4, 64, 16, 16), options, machine)).toThrow("error[bad-option]");
  });

  it("says what lowering says where nothing applies", () => {
    const f = new Fusion();
    const a = f.input([4, 8], "float");
    const c = linear(a, f.input([8, 8], "float"));
    f.output(c);
    a.setDeviceMesh(DeviceMesh.range(4));
    expect(() => choose(f, { devices: 4, propagate: false }, machine)).toThrow(DiagnosticError);
  });

  it("chooses what has the oracle's result", async () => {
    const fusion = allgatherMatmul(2, 64, 8, 16);
    const { considered } = choose(fusion, { devices: 2 }, machine);
    expect(considered.length).toBeGreaterThan(3);
    for (const { candidate } of considered) {
      const { lowering, schedule } = candidate;
      await expectOracle(fusion, { devices: 2, ...lowering, streams: candidateStreams, schedule });
    }
  }, 30_000);
});
