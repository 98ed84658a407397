/** Outputs that are written over inputs: state of later runs. */
import {
  add,
  compile,
  DeviceMesh,
  dynamicUpdate,
  Fusion,
  lower,
  MultiDeviceExecutor,
  mul,
  set,
  slice,
  sum,
  Tensor,
  type TensorView,
  verify,
} from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import type { Program } from "../../src/commands/program.ts";
import { at } from "../../src/support/invariant.ts";
import { diagnosticOf } from "../ir/expect-diagnostic.ts";
import { cpuBackends } from "../support/cpu-backends.ts";
import { expectOracle } from "../support/expect-oracle.ts";

const devices = 2;

interface Tensors {
  readonly cache: TensorView;
  readonly position: TensorView;
  readonly row: TensorView;
}

/** A cache of 16 positions, by heads on two devices, and the row of one position. */
function withCache(build: (f: Fusion, tensors: Tensors) => void, rows = 1): Fusion {
  const f = new Fusion();
  const tensors = { cache: f.input([4, 16, 8]), position: f.input([], "int64"), row: f.input([4, rows, 8]) };
  for (const tensor of f.inputs) tensor.setDeviceMesh(DeviceMesh.range(devices));
  for (const tensor of [tensors.cache, tensors.row]) tensor.outerSplit(0, devices).parallelize("DIDx");
  build(f, tensors);
  return f;
}

const step = (rows = 1): Fusion =>
  withCache((f, { cache, position, row }) => {
    const next = dynamicUpdate(cache, 1, position, mul(row, 2));
    f.output(sum(next, [1]));
    f.output(next, { alias: cache });
  }, rows);

/** The commands that copy into the buffers of an input, and the units that write over one. */
function movesOf({ ranks, buffers, kernels }: Program): { readonly copies: number; readonly inPlace: number } {
  const commands = ranks.flatMap((rank) => rank.commands);
  const launched = commands.flatMap((each) => (each.kind === "launch" ? [at(kernels, each.kernel)] : []));
  return {
    copies: commands.filter((each) => each.kind === "copy" && at(buffers, each.destination.buffer).output !== undefined)
      .length,
    inPlace: launched.filter((kernel) => kernel.kind === "unit" && kernel.inPlace !== undefined).length,
  };
}

describe("a cache that steps write", () => {
  it.each([1, 3])("has %i rows written over it, and nothing copied", async (rows) => {
    const f = step(rows);
    const { program, report } = compile(f, { devices });
    expect(report.findings).toEqual([]);
    expect(movesOf(program)).toEqual({ copies: 0, inPlace: devices });
    expect(program.buffers.map(({ role, output }) => `${role} ${output ?? "-"}`).slice(0, 4)).toEqual(
      ["input 1", "input -", "input -", "output -"], // prettier-ignore
    );
    await expectOracle(f, { devices });
  });

  it.each(cpuBackends)("goes from run to run: $name", async (on) => {
    const executor = await MultiDeviceExecutor.create(step(), { devices, on });
    const row = (value: number): Tensor => ({ ...Tensor.zeros([4, 1, 8]), data: new Float32Array(32).fill(value) });
    const position = (value: number): Tensor => Tensor.from(value, "int64");
    await executor.run([Tensor.zeros([4, 16, 8]), position(0), row(1)]);
    const seen: unknown[] = [];
    for (const i of [1, 2, 1]) {
      const [total, left] = await executor.run([null, position(i), row(i + 1)]);
      seen.push(left, (total as Tensor).data[5]);
    }
    expect(seen).toEqual([null, 2 + 4, null, 2 + 4 + 6, null, 2 + 4 + 6]);
    const whole = Tensor.zeros([4, 16, 8]);
    await executor.run([null, position(15), row(-1)], { outputs: [Tensor.zeros([4, 8]), whole] });
    expect([0, 1, 2, 3, 15].map((i) => whole.data[8 * i])).toEqual([2, 4, 6, 0, -2]);
    await executor.close();
  });

  it("is given in the first run", async () => {
    const executor = await MultiDeviceExecutor.create(step(), { devices });
    await expect(executor.run([null, Tensor.from(0, "int64"), Tensor.zeros([4, 1, 8])])).rejects.toThrow(
      "input 0 is null, and no run with these sizes has given it",
    );
    await executor.close();
  });
});

it("writes elementwise ops over their operand", async () => {
  const f = withCache((own, { cache }) => own.output(add(mul(cache, 0.5), 1), { alias: cache }));
  expect(movesOf(compile(f, { devices }).program)).toEqual({ copies: 0, inPlace: devices });
  await expectOracle(f, { devices });
});

describe("copies", () => {
  it("where something reads the old value later", async () => {
    const f = withCache((own, { cache, position, row }) => {
      const next = dynamicUpdate(cache, 1, position, row);
      own.output(next, { alias: cache });
      own.output(mul(sum(next, [1]), sum(cache, [1])));
    });
    const { program, report } = compile(f, { devices });
    expect(movesOf(program)).toEqual({ copies: devices, inPlace: 0 });
    expect(report.findings).toMatchObject([{ code: "state-copied", severity: "note", memory: { tensor: "T0" } }]);
    await expectOracle(f, { devices });
  });

  it("where a gather of the old value may still read it", async () => {
    const f = withCache((own, { cache, position, row }) => {
      const all = set(slice(cache, [0, 0, 0], [4, 2, 8]));
      own.output(dynamicUpdate(cache, 1, position, row), { alias: cache });
      own.output(all);
      all.setDeviceMesh(DeviceMesh.range(devices));
    });
    expect(movesOf(compile(f, { devices }).program)).toEqual({ copies: devices, inPlace: 0 });
    await expectOracle(f, { devices });
  });

  it("what a loop writes in chunks", async () => {
    const f = withCache((own, { cache }) => {
      const half = mul(cache, 0.5);
      own.output(add(half, 1), { alias: cache });
      half.outerSplit(1, 4).parallelize("Stream");
    });
    const { program, report } = compile(f, { devices });
    expect(report.ok).toBe(true);
    expect(movesOf(program)).toEqual({ copies: devices, inPlace: 0 });
    await expectOracle(f, { devices });
  });

  it("what is the element of another place", async () => {
    const f = withCache((own, { cache }) =>
      own.output(add(cache, slice(cache, [0, 0, 0], [4, 1, 8])), { alias: cache }),
    );
    await expectOracle(f, { devices });
  });
});

describe("the verifier", () => {
  const gathered = (): Fusion =>
    withCache((f, { cache, position, row }) => {
      const all = set(cache);
      f.output(dynamicUpdate(cache, 1, position, row), { alias: cache });
      f.output(all);
      all.setDeviceMesh(DeviceMesh.range(devices));
    });

  it("finds a write that comes before the old value has been read", () => {
    const hosts = Array.from({ length: devices }, (_, rank) => lower(gathered(), { rank }));
    expect(compile(hosts, { devices }).report.ok).toBe(true);
    // The gather of the old value is awaited at the end, and the update comes before it does.
    const late = hosts.map((host) => {
      const wait = host.body.filter(({ kind }) => kind === "Wait");
      return { ...host, body: [...host.body.filter(({ kind }) => kind !== "Wait"), ...wait] };
    });
    const { findings } = compile(late, { devices }).report;
    expect(findings.map(({ code }) => code)).toContain("transfer-not-waited");
  });

  it("finds an output that is another place of the input than its kernel says", () => {
    const { program } = compile(step(), { devices });
    const shifted = program.kernels.map((kernel) =>
      kernel.kind === "unit" && kernel.inPlace !== undefined
        ? { ...kernel, inPlace: [{ input: 0, output: 0 }] }
        : kernel,
    );
    const { findings } = verify({ ...program, kernels: shifted });
    expect(findings.map(({ code }) => code)).toContain("operands-overlap");
  });
});

it.each(cpuBackends)("ends where a position is past the end: $name", async (on) => {
  const executor = await MultiDeviceExecutor.create(step(3), { devices, on });
  const at = (position: number): Promise<unknown> =>
    executor.run([Tensor.zeros([4, 16, 8]), Tensor.from(position, "int64"), Tensor.zeros([4, 3, 8])]);
  await at(13);
  const failed = await at(14).catch((error: unknown) => error);
  expect(failed).toMatchObject({
    diagnostics: [{ code: "position-past-end", found: "an element for position 16 of 16" }],
  });
  expect(String(failed)).toMatch(/at: dynamicUpdate, rank [01], stream 0, command \d+ \(launch\) of: PostOnStream/u);
  await at(-1);
  await executor.close();
});

describe("refuses", () => {
  const refused = (build: (f: Fusion, tensors: Tensors) => void): string =>
    diagnosticOf(() => lower(withCache(build))).message;

  it("what does not fit", () => {
    expect(refused((f, { cache, row }) => f.output(add(row, 1), { alias: cache }))).toMatch(/does not fit/u);
    expect(refused((f, { position }) => f.output(mul(position, 0.5), { alias: position }))).toMatch(/does not fit/u);
  });

  it("what is no input, or has another output", () => {
    expect(refused((f, { row }) => f.output(add(row, 1), { alias: mul(row, 2) }))).toMatch(/is not an input/u);
    expect(
      refused((f, { row }) => {
        for (const by of [1, 2]) f.output(add(row, by), { alias: row });
      }),
    ).toMatch(/^T\d+ replaces T2 too$/u);
    expect(
      refused((f, { row }) => {
        f.output(row);
        f.output(add(row, 1), { alias: row });
      }),
    ).toMatch(/T2 itself is an output/u);
  });

  it("what lies otherwise on the devices", () => {
    const found = refused((f, { row }) => {
      const whole = add(row, 1);
      f.output(whole, { alias: row });
      whole.setDeviceMesh(DeviceMesh.range(devices));
      whole.outerSplit(2, devices).parallelize("DIDx");
    });
    expect(found).toMatch(/lies on the devices otherwise/u);
  });
});
