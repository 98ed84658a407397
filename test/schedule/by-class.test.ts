/** Rewrites of one rank of each class, carried over to the others, make the lists that rewriting every rank makes. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  add,
  DeviceMesh,
  DiagnosticError,
  Fusion,
  gelu,
  linear,
  type LowerOptions,
  matmul,
  permute,
  type Program,
  rmsNorm,
  sub,
  sum,
} from "@braid-compiler/braid";
import type { BufferId } from "../../src/commands/buffer.ts";
import { link } from "../../src/commands/link/link.ts";
import { lowerRanks } from "../../src/compile/lower.ts";
import { recordAll } from "../../src/compile/record.ts";
import { createDraftReader } from "../../src/schedule/draft/draft-reader.ts";
import { editRanks } from "../../src/schedule/draft/edit-ranks.ts";
import { applySchedule, type ScheduleOptions } from "../../src/schedule/schedule.ts";
import { buildGraph } from "../properties/annotated-graphs.ts";
import type { GraphStep } from "../properties/graph-ops.ts";
import { ring as ringOf } from "../support/peer-fusions.ts";
import { buildFusion, recipes } from "../support/random-fusion.ts";

const devices = 8;

const schedules: readonly ScheduleOptions[] = [
  { inPlace: true, splitChunks: 2, computeStreams: 1 },
  { earlyGathers: true, ownLast: true, batchSignals: true },
  { dropSignals: true, inPlace: true, splitChunks: 3, gemmSums: true, computeStreams: 2, copyStream: "dedicated" },
];

function linked(fusion: Fusion, { protocol, ...lowering }: Omit<LowerOptions, "rank">, on = devices): Program {
  const given = { backend: "cuda", ...lowering } as const;
  const { classes } = lowerRanks(fusion, on, given);
  return link(recordAll(classes, { devices: on, ...(protocol === undefined ? {} : { protocol }) }));
}

/** How many schedules were applied by class. Fails if one of them makes another Program than rank by rank. */
function countByClass(program: Program): number {
  return schedules.filter((schedule) => {
    const byClass = createDraftReader();
    const made = applySchedule(program, schedule, byClass);
    const full = applySchedule(program, schedule, createDraftReader(false));
    // A comparison value by value takes seconds.
    expect(JSON.stringify(made) === JSON.stringify(full)).toBe(true);
    return made !== program && byClass.symmetry(made) !== null;
  }).length;
}

/** A ring: the chunks are the devices' shards. */
const ring = (): Fusion => ringOf(devices, [4, 8, 6], "float");

/** Partial results by shares of K, which a loop over the devices adds. */
function sums(): Fusion {
  const f = new Fusion();
  const mesh = DeviceMesh.range(devices);
  const a = f.input([devices, devices, 6, 4], "float");
  const b = f.input([devices, 1, 4, 5], "float");
  const partial = matmul(a, b);
  const c = sum(partial, [0]);
  f.output(c);
  for (const tensor of [a, b, partial, c]) tensor.setDeviceMesh(mesh);
  a.axis(0).parallelize("DIDx");
  a.axis(1).parallelize("Stream");
  b.axis(0).parallelize("DIDx");
  partial.axis(0).parallelize("Stream");
  partial.axis(1).parallelize("DIDx");
  c.axis(1).parallelize("DIDx");
  return f;
}

/** As examples/mlp.ts, with sequences of their own on each row of the mesh. */
function mlp(): Fusion {
  const f = new Fusion();
  const [x, w1, w2] = [f.input([2, 16, 8], "float"), f.input([8, 8], "float"), f.input([8, 8], "float")];
  const y = linear(gelu(linear(x, w1)), w2);
  f.output(add(x, y));
  for (const tensor of [x, w1, w2]) tensor.setDeviceMesh(DeviceMesh.ofShape([2, 4]));
  x.axis(0).parallelize("DIDy");
  x.outerSplit(1, 2);
  x.outerSplit(2, 4).parallelize("DIDx");
  w1.outerSplit(0, 4).parallelize("DIDx");
  w2.outerSplit(1, 4).parallelize("DIDx");
  y.outerSplit(1, 2).parallelize("Stream");
  return f;
}

/** Rows scattered as they are added, which the kernel of a norm reads in the order of the devices. */
function normedSums(): Fusion {
  const f = new Fusion();
  const [x, w, scale] = [f.input([16, 16], "bfloat16"), f.input([8, 16], "bfloat16"), f.input([8], "bfloat16")];
  const y = rmsNorm(linear(x, w), scale);
  f.output(y);
  for (const tensor of [x, w, scale, y]) tensor.setDeviceMesh(DeviceMesh.range(devices));
  x.outerSplit(1, devices).parallelize("DIDx");
  w.outerSplit(1, devices).parallelize("DIDx");
  y.outerSplit(0, devices).parallelize("DIDx");
  return f;
}

describe("one rank of a class is rewritten as all are, in", () => {
  it.each(["get", "put"] as const)("a ring of copies, by %s", (protocol) => {
    expect(countByClass(linked(ring(), { protocol }))).toBe(3);
  });
  it.each(["get", "put"] as const)("sums over a ring, by %s", (protocol) => {
    expect(countByClass(linked(sums(), { protocol }))).toBe(3);
  });
  it("a norm of sums over a ring", () => {
    const made = linked(normedSums(), { protocol: "put", deviceLoops: true });
    const sums = made.kernels.filter(({ kind, inputs }) => kind === "unit" && inputs.length > devices);
    expect(sums.length).toBe(1);
    expect(countByClass(made)).toBe(3);
  });
  it("an MLP on two dimensions of devices", () => {
    expect(countByClass(linked(mlp(), {}))).toBe(3);
    expect(countByClass(linked(mlp(), { backend: "nccl" }))).toBeGreaterThan(0);
  });
  it("a graph whose copies in a row begin elsewhere on each device", () => {
    const step = (op: number, operand: number, other: number, size: number): GraphStep => ({
      op,
      operand,
      other,
      size,
    });
    const { fusion } = buildGraph({
      grid: 3,
      shape: [3, 4],
      symbolic: false,
      inputs: [
        { x: 2, y: 0, bare: false },
        { x: 2, y: 3, bare: false },
        { x: 0, y: 3, bare: false },
        { x: 0, y: 0, bare: true },
      ],
      steps: [
        step(12, 7, 1, 2),
        step(3, 5, 6, 0),
        step(3, 7, 2, 5),
        step(Infinity, 7, 0, 1),
        step(3, 0, 5, 0),
        step(Infinity, 3, 2, 6),
      ],
      stream: { tensor: 2, axis: 1, parts: 2, nest: "inside" },
    });
    expect(countByClass(linked(fusion, { protocol: "put", deviceLoops: true, p2p: "rotated" }, 4))).toBe(3);
  });
  it("a product of a tensor with each device's own rows of it", () => {
    const f = new Fusion();
    const x = f.input([2 * devices, 4], "float");
    const y = matmul(x, permute(x, [1, 0]));
    f.output(y);
    for (const tensor of [x, y]) tensor.setDeviceMesh(DeviceMesh.range(devices));
    y.outerSplit(1, devices).parallelize("DIDx");
    y.outerSplit(2, 2).parallelize("Stream");
    expect(countByClass(linked(f, {}))).toBe(2);
    const made = applySchedule(linked(f, {}), { inPlace: true }, createDraftReader());
    const offsets = made.ranks.map(({ commands }) =>
      commands.flatMap((each) => (each.kind === "launch" ? each.inputs.map(({ offset }) => offset) : [])),
    );
    expect(offsets).toEqual(made.ranks.map(({ rank }) => [0, 32 * rank, 0, 32 * rank + 16]));
  });
  it("an edit that chooses otherwise on another rank, which is made rank by rank", () => {
    const f = new Fusion();
    const [a, b] = [f.input([devices, 4], "float"), f.input([devices, 4], "float")];
    f.output(sub(a, b));
    for (const tensor of f.inputs) {
      tensor.setDeviceMesh(DeviceMesh.range(devices));
      tensor.axis(0).parallelize("DIDx");
    }
    const program = linked(f, {});
    const order = ({ ranks }: Program): readonly (readonly BufferId[])[] =>
      ranks.map(({ commands }) =>
        commands.flatMap((each) => (each.kind === "launch" ? each.inputs.map(({ buffer }) => buffer) : [])),
      );
    const made = editRanks(program, createDraftReader(), (draft) => ({
      ...draft,
      nodes: draft.nodes.map((node) => {
        if (node.command.kind !== "launch") return node;
        const inputs = node.command.inputs.map((ref) => ({ ...ref }));
        return { ...node, command: { ...node.command, inputs: draft.rank === 0 ? inputs : inputs.toReversed() } };
      }),
    }));
    expect(order(made)).toEqual(order(program).map((each, rank) => (rank === 0 ? each : each.toReversed())));
  });
  it("random programs", () => {
    let byClass = 0;
    fc.assert(
      fc.property(recipes, fc.boolean(), (recipe, isPut) => {
        try {
          byClass += countByClass(linked(buildFusion(recipe), isPut ? { protocol: "put" } : {}));
        } catch (error) {
          if (!(error instanceof DiagnosticError)) throw error;
        }
      }),
      { numRuns: 15, seed: 1 },
    );
    expect(byClass).toBeGreaterThan(2);
  });
});
