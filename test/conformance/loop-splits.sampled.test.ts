/**
 * nvFuser's tests with a DID type on a split axis: LowerCollectiveTest's collectives, RowParallelLinear, and
 * the linears of tests/python/multidevice/test_overlap.py, in chunks that are an axis of their own.
 */
import { expect, it } from "vitest";
import { compile, Fusion, linear, lower, type Program } from "@braid-compiler/braid";
import type { HostProgram, Statement } from "../../src/host/nodes.ts";
import { walk } from "../../src/host/traverse.ts";
import type { Sizes } from "../../src/ir/sizes.ts";
import { collectivesOf } from "../support/collectives-of.ts";
import { expectOracle } from "../support/expect-oracle.ts";
import { loopSplitCollectives, shard } from "../support/loop-split-fusions.ts";
import { onMesh } from "../support/on-mesh.ts";
import { combinations } from "../support/split-cases.ts";
import { sample } from "../support/suite.ts";
import { elementCount } from "../../src/numerics/tensor/host-tensor.ts";

const deviceCounts = [1, 2, 3, 4, 8];

function kindsOf(host: HostProgram): readonly Statement["kind"][] {
  const kept = new Set<Statement["kind"]>(["Reduction", "Communication", "Matmul", "Linear", "Binary", "Set"]);
  return walk(host.body).flatMap(({ kind }) => (kept.has(kind) ? [kind] : []));
}

interface Product {
  readonly stream: number;
  readonly operands: readonly (readonly number[])[];
  readonly result: readonly number[];
}

/** The products that a rank launches, in the order of its list. */
function productsOf(program: Program, rank: number): readonly Product[] {
  const { commands = [] } = program.ranks[rank] ?? {};
  return commands.flatMap((command) => {
    const kernel = command.kind === "launch" ? program.kernels[command.kernel] : undefined;
    if (kernel?.kind !== "linear" && kernel?.kind !== "matmul") return [];
    const [result = []] = kernel.outputs.map(({ shape }) => shape);
    return [{ stream: command.stream, operands: kernel.inputs.map(({ shape }) => shape), result }];
  });
}

/** The elements that each transfer of a rank puts out. */
function transferredBy(program: Program, rank: number): readonly number[] {
  const { commands = [] } = program.ranks[rank] ?? {};
  return commands.flatMap((command) =>
    command.kind === "transfer" && command.operation.kind === "collective" && command.operation.output !== null
      ? [elementCount(command.operation.output.shape)]
      : [],
  );
}

async function expectOnBothBackends(devices: number, build: () => Fusion, sizes: Sizes = new Map()): Promise<void> {
  await expectOracle(build(), { devices, sizes });
  await expectOracle(build(), { devices, sizes, backend: "cuda" });
}

it.each(sample(combinations({ devices: deviceCounts, collective: loopSplitCollectives }), 12))(
  "$collective.name, $devices devices",
  async ({ devices, collective }) => {
    const { build, sizes, kinds, communications } = collective;
    expect(collectivesOf(build(devices), devices)).toBe(communications);
    expect(kindsOf(lower(build(devices), { rank: 0 }))).toEqual(kinds);
    await expectOnBothBackends(devices, () => build(devices), sizes(devices));
  },
);

it.each(sample(combinations({ devices: deviceCounts, dtype: ["float", "half", "bfloat16"] as const }), 12))(
  "RowParallelLinear, $dtype, $devices devices: the bias is added once",
  async ({ devices, dtype }) => {
    const build = (withBias: boolean): Fusion => {
      const f = new Fusion();
      const x = f.input([2, 3, 4 * devices], dtype);
      const w = f.input([5, 4 * devices], dtype);
      const bias = withBias ? [f.input([5], dtype)] : [];
      const y = linear(x, w, ...bias);
      f.output(y);
      onMesh([x, w, ...bias, y], devices);
      shard(x, 2, devices);
      shard(w, 1, devices);
      // As nvFuser propagates it; without, the same.
      if (withBias) shard(y, 3, devices);
      return f;
    };
    expect(kindsOf(lower(build(false), { rank: 0 }))).toEqual(["Linear", "Communication"]);
    expect(kindsOf(lower(build(true), { rank: 0 }))).toEqual(["Linear", "Communication"]);
    const { recorded } = compile(build(true), { devices });
    for (let rank = 0; rank < devices; rank++) {
      // No product adds the bias: one addition does, of what the devices have summed.
      expect(productsOf(recorded, rank).map(({ operands }) => operands)).toEqual([
        [
          [6, 4],
          [5, 4],
        ],
      ]);
      const { commands = [] } = recorded.ranks[rank] ?? {};
      const kernels = commands.flatMap((each) => (each.kind === "launch" ? [recorded.kernels[each.kernel]] : []));
      const units = kernels.flatMap((kernel) => (kernel?.kind === "unit" ? [kernel] : []));
      expect(units).toMatchObject([{ outputs: [{ shape: [2, 3, 5] }] }]);
      expect(units.flatMap(({ steps }) => steps.map(({ kind }) => kind))).toEqual(["Broadcast", "Binary"]);
      expect(commands.findIndex(({ kind }) => kind === "transfer")).toBeLessThan(
        commands.findLastIndex(({ kind }) => kind === "launch"),
      );
    }
    for (const withBias of [false, true]) {
      expect(collectivesOf(build(withBias), devices)).toBe("Allreduce 1");
      await expectOnBothBackends(devices, () => build(withBias));
    }
  },
);

it.each(sample(combinations({ devices: deviceCounts, chunks: [1, 2, 6] }), 12))(
  "test_row_parallel_linear_forward, $chunks chunks, $devices devices: one product of [t/s, 4h/d] by [4h/d, h] per chunk, and its sum",
  async ({ devices, chunks }) => {
    const [hidden, tokens] = [2 * devices, 6];
    const build = (): Fusion => {
      const f = new Fusion();
      const x = f.input([chunks, tokens / chunks, 4 * hidden], "bfloat16");
      const w = f.input([hidden, 4 * hidden], "bfloat16");
      const y = linear(x, w);
      f.output(y);
      onMesh([x, w, y], devices);
      shard(x, 2, devices);
      shard(w, 1, devices);
      y.axis(0).parallelize("Stream");
      return f;
    };
    const host = lower(build(), { rank: 0 });
    const loops = host.body.filter((statement) => statement.kind === "ForLoop");
    const kinds = loops.map(({ body }) => kindsOf({ ...host, body }));
    expect(kinds).toEqual([[], ["Linear", "Communication"]]);
    const { recorded } = compile(build(), { devices });
    const [rows, inner] = [tokens / chunks, (4 * hidden) / devices];
    for (let rank = 0; rank < devices; rank++) {
      const products = productsOf(recorded, rank).map(({ operands, result }) => [...operands, result]);
      const product = [
        [rows, inner],
        [hidden, inner],
        [rows, hidden],
      ];
      expect(products).toEqual(Array.from({ length: chunks }, () => product));
      expect(transferredBy(recorded, rank)).toEqual(Array.from({ length: chunks }, () => rows * hidden));
    }
    await expectOnBothBackends(devices, build);
  },
);

it.each(sample(combinations({ devices: deviceCounts, p2p: ["rotated", "broadcast"] as const }), 9))(
  "test_column_parallel_linear_forward, $p2p, $devices devices: chunks of tokens come from the devices while others are multiplied",
  async ({ devices, p2p }) => {
    const [hidden, tokens] = [2, 4];
    const build = (): Fusion => {
      const f = new Fusion();
      const x = f.input([devices, tokens, hidden], "bfloat16");
      const w = f.input([4 * hidden * devices, hidden], "bfloat16");
      const y = linear(x, w);
      f.output(y);
      onMesh([x, w, y], devices);
      x.axis(0).parallelize("DIDx");
      shard(w, 0, devices);
      shard(y, 2, devices);
      y.axis(0).parallelize("Stream");
      return f;
    };
    expect(collectivesOf(build(), devices, { p2p })).toBe(p2p === "broadcast" ? "Broadcast 1" : "");
    const { recorded } = compile(build(), { devices, p2p, streams: 2 });
    for (let rank = 0; rank < devices; rank++) {
      const products = productsOf(recorded, rank);
      expect(products.map(({ operands: [x] }) => x)).toEqual(Array.from({ length: devices }, () => [tokens, hidden]));
      // The next chunk comes on the other stream, so its product waits for it and this one does not.
      for (const [i, { stream }] of products.entries()) {
        if (i > 0) expect(stream).not.toBe(products[i - 1]?.stream);
      }
    }
    for (const backend of ["nccl", "cuda"] as const) {
      await expectOracle(build(), { devices, p2p, backend });
    }
  },
);

it.each(sample(combinations({ devices: deviceCounts, chunks: [1, 8] }), 9))(
  "test_overlap_allgather_matmul_stream_outermost, $chunks chunks, $devices devices",
  async ({ devices, chunks }) => {
    const build = (): Fusion => {
      const f = new Fusion();
      const x = f.input([chunks, devices, 2, 8], "bfloat16");
      const w = f.input([6, 8], "bfloat16");
      const bias = f.input([6], "bfloat16");
      const y = linear(x, w, bias);
      f.output(y);
      onMesh([x, w, bias, y], devices);
      x.axis(1).parallelize("DIDx");
      y.axis(0).parallelize("Stream");
      return f;
    };
    expect(collectivesOf(build(), devices)).toBe("Allgather 1");
    const { recorded } = compile(build(), { devices });
    for (let rank = 0; rank < devices; rank++) {
      // Of each chunk, the rows of all devices come in one Allgather, and one product takes them.
      const chunk = [[2 * devices, 8], [6, 8], [6]];
      expect(productsOf(recorded, rank).map(({ operands }) => operands)).toEqual(
        Array.from({ length: chunks }, () => chunk),
      );
      expect(transferredBy(recorded, rank)).toEqual(Array.from({ length: chunks }, () => devices * 2 * 8));
    }
    await expectOracle(build(), { devices });
  },
);

it.each(sample(combinations({ devices: deviceCounts, backend: ["nccl", "cuda"] as const }), 9))(
  "test_overlap_allgather_matmul_shard_outermost, $backend, $devices devices",
  async ({ devices, backend }) => {
    const build = (): Fusion => {
      const f = new Fusion();
      const x = f.input([devices, 3, 8], "bfloat16");
      const w = f.input([6, 8], "bfloat16");
      const bias = f.input([6], "bfloat16");
      const y = linear(x, w, bias);
      f.output(y);
      onMesh([x, w, bias, y], devices);
      x.axis(0).parallelize("DIDx");
      y.axis(0).parallelize("Stream");
      return f;
    };
    // The chunks are the devices' rows: each is sent on its own, and no collective waits for all of them.
    expect(collectivesOf(build(), devices, { backend })).toBe("");
    const { recorded } = compile(build(), { devices, backend, streams: 2 });
    for (let rank = 0; rank < devices; rank++) {
      const products = productsOf(recorded, rank);
      expect(products.map(({ operands: [x] }) => x)).toEqual(Array.from({ length: devices }, () => [3, 8]));
      for (const [i, { stream }] of products.entries()) {
        if (i > 0) expect(stream).not.toBe(products[i - 1]?.stream);
      }
    }
    await expectOracle(build(), { devices, backend });
  },
);

it.each(sample(combinations({ devices: deviceCounts, backend: ["nccl", "cuda"] as const }), 9))(
  "test_allgather_matmul_no_overlap, $backend, $devices devices",
  async ({ devices, backend }) => {
    const build = (): Fusion => {
      const f = new Fusion();
      const a = f.input([devices, 3, 8], "bfloat16");
      const w = f.input([6, 8], "bfloat16");
      const bias = f.input([6], "bfloat16");
      const y = linear(a, w, bias);
      f.output(y);
      onMesh([a, w, bias, y], devices);
      a.axis(0).parallelize("DIDx");
      if (backend === "cuda") y.setMemoryType("symmetric");
      return f;
    };
    expect(collectivesOf(build(), devices)).toBe("Allgather 1");
    expect(kindsOf(lower(build(), { rank: 0 }))).toEqual(["Communication", "Linear"]);
    const { recorded } = compile(build(), { devices });
    for (let rank = 0; rank < devices; rank++) {
      expect(productsOf(recorded, rank).map(({ operands: [x] }) => x)).toEqual([[3 * devices, 8]]);
      expect(transferredBy(recorded, rank)).toEqual([devices * 3 * 8]);
    }
    await expectOracle(build(), { devices, backend });
  },
);
