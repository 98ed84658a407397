/** Pipelines from one stage's Fusion: values, deadlocks of users' own orders, memory, bubbles. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  add,
  compile,
  DeviceMesh,
  Fusion,
  type HostProgram,
  linear,
  MultiDeviceExecutor,
  pipeline,
  type PipelineOrder,
  pipelineOrders,
  type PipelineRequest,
  type PipelineStep,
  parseProfile,
  relu,
  simulate,
  sum,
  type Tensor,
} from "@braid-compiler/braid";
import { bubbleOf } from "../../../src/explain/explain.ts";

const [B, H] = [2, 3];

/** y = x + relu(x) W^T. */
function stage({ mesh }: { readonly mesh: DeviceMesh }): Fusion {
  return residual(mesh, B, H);
}

function residual(mesh: DeviceMesh, B: number, H: number): Fusion {
  const f = new Fusion();
  const [x, w] = [f.input([B, H]), f.input([H, H])];
  f.output(add(x, linear(relu(x), w)));
  for (const tensor of [x, w]) tensor.setDeviceMesh(mesh);
  return f;
}

type Given = Partial<PipelineRequest> & { readonly order: PipelineOrder };

const hostsOf = (given: Given, devices = given.order.length): readonly HostProgram[] =>
  Array.from({ length: devices }, (_, rank) => pipeline({ devices, rank, stage, ...given }));

const stagesOf = (order: PipelineOrder): number => Math.max(...order.flat().map((step) => step.stage)) + 1;

/** Numbers between -1 and 1 that are not near the corner of relu. */
const numbers = (count: number, seed: number): readonly number[] =>
  Array.from({ length: count }, (_, i) => {
    const value = Math.sin(12.9898 * (i + 1) + 78.233 * seed);
    return Math.sign(value) * (0.2 + 0.8 * Math.abs(value));
  });

/** The whole batch through all stages, in double, without Braid; then the sum of products with the cotangent. */
function forward(x: readonly number[], weights: readonly (readonly number[])[]): readonly number[] {
  return weights.reduce<readonly number[]>((hidden, w) => {
    return hidden.map((value, at) => {
      const row = Math.floor(at / H) * H;
      const of = (at % H) * H;
      return Array.from({ length: H }, (_, k) => Math.max(hidden[row + k] ?? 0, 0) * (w[of + k] ?? 0)).reduce(
        (total, term) => total + term,
        value,
      );
    });
  }, x);
}

async function run(given: Given, inputs: readonly (readonly number[])[], microBatches: number) {
  const tensors = inputs.map((values, i): Tensor => {
    return { dtype: "float", shape: i < 2 ? [microBatches, B, H] : [H, H], data: Float32Array.from(values) };
  });
  const executor = await MultiDeviceExecutor.create(hostsOf(given), { devices: given.order.length });
  try {
    return (await executor.run(tensors)).map(({ data }) => [...data].map(Number));
  } finally {
    await executor.close();
  }
}

const M = 4;
const generated = [
  ["gpipe", pipelineOrders.gpipe({ ranks: 2, microBatches: M })],
  ["oneForwardOneBackward", pipelineOrders.oneForwardOneBackward({ ranks: 3, microBatches: M })],
  ["interleaved", pipelineOrders.interleaved({ ranks: 2, microBatches: M })],
  ["zeroBubble", pipelineOrders.zeroBubble({ ranks: 3, microBatches: M })],
] as const;

describe.each(generated)("%s", (_, order) => {
  it("gives the output and, by slopes of the whole batch, the gradients", async () => {
    const stages = stagesOf(order);
    const [x, dy] = [numbers(M * B * H, 1), numbers(M * B * H, 2)];
    const weights = Array.from({ length: stages }, (__, s) => numbers(H * H, 3 + s).map((value) => value / 2));
    const loss = (all: readonly (readonly number[])[]): number => {
      const [first = [], ...others] = all;
      return forward(first, others).reduce((total, value, i) => total + value * (dy[i] ?? 0), 0);
    };
    const [y, ...found] = await run({ order }, [x, dy, ...weights], M);
    forward(x, weights).forEach((value, i) => {
      expect(y?.[i]).toBeCloseTo(value, 4);
    });
    const all = [x, ...weights];
    const eps = 1e-5;
    for (const [which, values] of all.entries()) {
      for (const i of values.keys()) {
        const moved = (by: number) => loss(all.with(which, values.with(i, (values[i] ?? 0) + by)));
        expect(found[which]?.[i]).toBeCloseTo((moved(eps) - moved(-eps)) / (2 * eps), 3);
      }
    }
  });

  it("is free of deadlocks, and has no findings", () => {
    expect(findingsOf({ order })).toEqual([]);
  });
});

/** `0F1` is the forward pass of micro-batch 1 in stage 0; B, I and W are the others. */
function steps(text: string): readonly PipelineStep[] {
  const passes = { F: "forward", B: "backward", I: "inputGradient", W: "weightGradient" } as const;
  return [...text.matchAll(/(\d)([FBIW])(\d)/gu)].map(([, number, pass, microBatch]) => {
    const known = pass === "F" || pass === "B" || pass === "I" ? pass : "W";
    return { stage: Number(number), microBatch: Number(microBatch), pass: passes[known] };
  });
}

const findingsOf = (given: Given, communicators: "team" | "pair" = "team") =>
  compile(hostsOf(given), { devices: given.order.length, communicators, notes: false }).report.findings;

describe("users' own orders", () => {
  it("a micro-batch that one rank needs before the other may send it is a deadlock, with rank and place", () => {
    const order = [steps("0F0 0B0 0F1 0B1"), steps("1F1 1F0 1B0 1B1")];
    const [finding] = findingsOf({ order });
    expect(finding).toMatchObject({ code: "deadlock", severity: "error" });
    expect(JSON.stringify(finding)).toMatch(/"rank":1\b/);
    expect(JSON.stringify(finding)).toContain("x of stage 1, micro-batch 1");
  });

  it("pytorch #172668: late receives after sends on one communicator wait for each other; early ones do not", () => {
    // Two ranks of two stages each, as in the report: 0SEND_F2 before 2RECV_B0, and 3SEND_B0 before 1RECV_F2.
    const order = [
      steps("0F0 0F1 2F0 2F1 0F2 2B0 2F2 2B1 2B2 0B0 0B1 0B2"),
      steps("1F0 1F1 3F0 3B0 3F1 3B1 1F2 3F2 3B2 1B0 1B1 1B2"),
    ];
    expect(findingsOf({ order })).toEqual([]);
    const [finding] = findingsOf({ order, transfers: "late" });
    expect(finding).toMatchObject({ code: "deadlock" });
    expect(finding?.place).toBeDefined();
  });

  it("pytorch #178815: so do those of the interleaved order", () => {
    const order = pipelineOrders.interleaved({ ranks: 2, microBatches: 4 });
    expect(findingsOf({ order, transfers: "late" })[0]).toMatchObject({ code: "deadlock" });
  });

  it("Megatron-LM #5240: with a communicator for each pair of ranks, four of them with two stages each, too", () => {
    const order = pipelineOrders.interleaved({ ranks: 4, microBatches: 4 });
    const codes = findingsOf({ order, transfers: "late" }, "pair").map(({ code }) => code);
    expect(codes).toContain("deadlock");
    expect(findingsOf({ order }, "pair")).toEqual([]);
  });

  it.each([
    ["0B0 0F0", "rank 0, step 0: backward of micro-batch 0 in stage 0"],
    ["0F0 0I0 0B0", "rank 0, step 2: backward of micro-batch 0 in stage 0"],
    ["0F0 0I0", "rank 0: weightGradient of micro-batch 0 in stage 0"],
    ["0F0 0F1 0B1", "rank 0: backward of micro-batch 0 in stage 0"],
    ["", "the lists"],
  ])("%s is not an order", (text, where) => {
    expect(() => hostsOf({ order: [steps(text)] })).toThrow(where);
  });

  it("a stage on two ranks is not one", () => {
    expect(() => hostsOf({ order: [steps("0F0 0B0"), steps("0F1 0B1")] })).toThrow("stage 0 on rank 1, too");
  });
});

describe("bad stages", () => {
  const order = pipelineOrders.gpipe({ ranks: 2, microBatches: 1 });

  it("an output that the next stage does not take", () => {
    const wide = ({ stage: number, mesh }: { readonly stage: number; readonly mesh: DeviceMesh }): Fusion => {
      const f = new Fusion();
      const [x, w] = [f.input([B, H + number]), f.input([H, H + number])];
      f.output(linear(x, w));
      for (const tensor of [x, w]) tensor.setDeviceMesh(mesh);
      return f;
    };
    expect(() => hostsOf({ order, stage: wide })).toThrow("stages 0 and 1 do not fit");
  });

  it("two outputs, and devices that the lists do not divide", () => {
    const two = (place: { readonly mesh: DeviceMesh }): Fusion => {
      const f = stage(place);
      const [y] = f.outputs;
      if (y !== undefined) f.output(sum(y, [0]));
      return f;
    };
    expect(() => hostsOf({ order, stage: two })).toThrow("2 inputs and 2 outputs");
    expect(() => hostsOf({ order }, 3)).toThrow("3 devices for 2 lists");
  });
});

it("1F1B needs less memory on the ranks that GPipe lets hold all micro-batches", () => {
  const bytes = (order: PipelineOrder): number => {
    const { program } = compile(hostsOf({ order }), { devices: order.length });
    return Object.values(program.ranks[1]?.arenaBytes ?? {}).reduce((total, each) => total + each, 0);
  };
  const request = { ranks: 2, microBatches: 8 };
  expect(bytes(pipelineOrders.oneForwardOneBackward(request))).toBeLessThan(bytes(pipelineOrders.gpipe(request)));
});

describe("the bubble of 4 ranks and 8 micro-batches on 4 H200", () => {
  const [ranks, microBatches] = [4, 8];
  const profile = parseProfile(
    readFileSync(new URL("../../../profiles/4xH200.json", import.meta.url), "utf8"),
    "4xH200",
  );

  it.each([
    ["gpipe", 3 / 11],
    ["oneForwardOneBackward", 3 / 11],
    ["interleaved", 3 / 19],
    ["zeroBubble", 1 / 9],
  ] as const)("of %s is the textbook's, and transfers", (name, formula) => {
    const order = pipelineOrders[name]({ ranks, microBatches });
    const large = ({ mesh }: { readonly mesh: DeviceMesh }): Fusion => residual(mesh, 4096, 4096);
    const compilation = compile(hostsOf({ order, stage: large }), { devices: ranks, on: "cuda", notes: false });
    const bubble = bubbleOf(
      compilation.program,
      simulate(compilation.program, profile, { graph: true }),
      compilation.signature,
    );
    expect(bubble).toBeGreaterThan(formula - 0.005);
    expect(bubble).toBeLessThan(formula + 0.05);
  });

  it("is shown only for programs with stages", () => {
    const f = residual(DeviceMesh.range(2), B, H);
    const { program, signature } = compile(f, { devices: 2 });
    expect(bubbleOf(program, { trace: [], milliseconds: 1 }, signature)).toBeNull();
  });
});
