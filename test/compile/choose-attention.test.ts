/** Attention "auto": which attention stays one op on GPUs, and the notes on the others. */
import { compile, type CompileOptions, DeviceMesh, Fusion, sdpa, type SdpaOptions } from "@braid-compiler/braid";
import { describe, expect, it } from "vitest";
import { chooseAttention } from "../../src/compile/choose-attention.ts";
import { gradients } from "../../src/ir/api/gradients.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { renderDiagnostic } from "../../src/diagnostics/diagnostic.ts";
import { MultiDeviceExecutor } from "../../src/executor/multi-device-executor.ts";
import { cpuBackend } from "../../src/cpu.ts";

type Shape = readonly (number | null)[];

interface Form extends SdpaOptions {
  readonly dtype?: DType;
  readonly q?: Shape;
  readonly k?: Shape;
  readonly v?: Shape;
  readonly backward?: boolean;
  /** Devices over which axis 0 is cut. */
  readonly heads?: number;
}

function program({
  dtype = "bfloat16",
  q = [2, 16, 64],
  k = q,
  v = k,
  backward = false,
  heads,
  ...options
}: Form): Fusion {
  const f = new Fusion();
  const wrt = [f.input(q, dtype), f.input(k, dtype), f.input(v, dtype)] as const;
  if (heads !== undefined) {
    for (const tensor of wrt) tensor.setDeviceMesh(DeviceMesh.range(heads)).outerSplit(0, heads).parallelize("DIDx");
  }
  const { output } = sdpa(...wrt, options);
  f.output(output);
  const g = f.input([...q.slice(0, -1), v.at(-1) ?? null], dtype);
  if (!backward) return f;
  for (const gradient of gradients(f, { of: [output], cotangents: [g], wrt }))
    if (gradient !== null) f.output(gradient);
  return f;
}

const auto = { on: "cuda", attention: "auto" } as const;

function kinds(f: Fusion, options: Omit<CompileOptions, "devices">): readonly string[] {
  const all = compile(f, { devices: 1, ...options }).hosts.flatMap(({ body }) => body.map(({ kind }) => kind));
  return all.filter((kind) => kind.startsWith("Sdpa"));
}

describe("cuDNN", () => {
  const taken: readonly Form[] = [
    { backward: true },
    { dtype: "half", causal: "topLeft", backward: true },
    { q: [1, 2, 3, 16, 8], k: [1, 2, 1, 20, 8], v: [1, 2, 1, 20, 128], causal: "bottomRight", backward: true },
    { q: [2, 1, 64] },
    { causal: "topLeft", window: 4, backward: true },
    { q: [2, 16, 256], causal: "topLeft", backward: true },
    { q: [2, 16, 192], v: [2, 16, 128], backward: true },
  ];
  it("takes a mask, which no kernel of few queries does", () => {
    const f = new Fusion();
    const [q, k] = [f.input([2, 1, 48], "half"), f.input([2, 1000, 48], "half")];
    f.output(sdpa(q, k, k, { mask: f.input([2, 1, 1000], "bool") }).output);
    expect(chooseAttention(f, auto, () => "no cuDNN").notes.map(({ found }) => found)).toEqual(["no cuDNN"]);
    expect(chooseAttention(f, auto, () => null).notes).toEqual([]);
    expect(kinds(f, auto)).toEqual(["Sdpa"]);
  });

  it.each(taken)("takes %o", (form) => {
    const f = program(form);
    expect(chooseAttention(f, auto, () => null)).toEqual({ options: auto, notes: [] });
    expect(kinds(f, auto)).toEqual(form.backward === true ? ["Sdpa", "SdpaBackward"] : ["Sdpa"]);
  });

  const others: readonly (readonly [Form, string])[] = [
    [{ dtype: "float" }, "float"],
    [{ dtype: "double" }, "double"],
    [{ q: [2, 16, 12] }, "heads of 12 elements of q and k"],
    [{ q: [2, 16, 264] }, "heads of 264 elements of q and k"],
    [{ v: [2, 16, 20] }, "heads of 20 elements of v"],
    [{ q: [2, 17, 64], k: [2, 16, 64], causal: "bottomRight" }, "rows that see no key: 17 rows of q, 16 keys"],
    [{ k: [2, 0, 64] }, "no keys"],
    [{ q: [2, 17, 64], k: [2, 16, 64], causal: "topLeft", window: 4 }, "a window of 4 keys, 17 rows of q, 16 keys"],
    [{ scale: -0.2 }, "a scale of -0.2"],
    [{ scale: 0 }, "a scale of 0"],
  ];
  it.each(others)("does not take %o", (form, found) => {
    const f = program(form);
    const { options, notes } = chooseAttention(f, auto, () => null);
    expect(options).toEqual(auto);
    expect(notes.map((note) => note.found)).toEqual([found]);
    expect(kinds(f, auto)).toEqual([]);
    // Whoever asks for one kernel gets one op.
    expect(kinds(f, { ...auto, attention: "fused" })).toEqual(["Sdpa"]);
  });

  it("takes one row and one key forward, not backward", () => {
    const f = program({ q: [2, 1, 64], backward: true });
    expect(kinds(f, auto)).toEqual(["Sdpa"]);
    const [note, ...rest] = chooseAttention(f, auto, () => null).notes;
    expect(rest).toEqual([]);
    expect(note === undefined ? "" : renderDiagnostic(note)).toBe(
      [
        "note[gpu-unsupported]: the gradient of attention runs as matmuls and a softmax",
        "  at: T6_g___bfloat[iS17{2}, iS18{1}, iS19{64}]",
        "  found: the gradient of one row and one key",
        "  expected: more rows, or more keys",
        "  fix: pass --schedule attention=ops for the same without this note",
      ].join("\n"),
    );
  });

  it("may take unknown numbers of rows and keys, and no heads of unknown size", () => {
    expect(chooseAttention(program({ q: [null, null, 64] }), auto, () => null).notes).toEqual([]);
    const { notes } = chooseAttention(program({ q: [2, 16, null] }), auto, () => null);
    expect(notes[0]?.found).toBe("heads of q and k whose size is not known when the program is lowered");
  });

  it("needs no communication for heads over devices", () => {
    const f = program({ q: [4, 16, 64], causal: "topLeft", backward: true, heads: 2 });
    const { program: linked, hosts } = compile(f, { devices: 2, ...auto });
    expect(hosts[0]?.body.map(({ kind }) => kind)).toEqual(expect.arrayContaining(["Sdpa", "SdpaBackward"]));
    expect(linked.transfers).toEqual([]);
    expect(linked.kernels.find(({ kind }) => kind === "sdpa")?.inputs[0]?.shape).toEqual([2, 16, 64]);
  });
});

describe("a machine without cuDNN", () => {
  it("runs ops, with one note", () => {
    const { options, notes } = chooseAttention(program({ backward: true }), auto, () => "cuDNN is not installed");
    expect(options).toEqual({ on: "cuda", attention: "ops" });
    expect(notes.map(({ found, expected }) => [found, expected])).toEqual([
      ["cuDNN is not installed", "cuDNN (braid doctor)"],
    ]);
  });

  it("is told how large the heads of gradients are", () => {
    const asked: number[] = [];
    const ask = (gradientHeads: number): string | null => (asked.push(gradientHeads) > 4 ? "too large" : null);
    const { options, notes } = [
      program({ q: [2, 16, 256] }),
      program({ q: [2, 16, 64], v: [2, 16, 128], backward: true }),
      program({ q: [2, 16, 192], v: [2, 16, 128], backward: true }),
      program({ dtype: "float", q: [2, 16, 192], backward: true }),
      program({ q: [2, 16, 256], backward: true }),
    ].map((f) => chooseAttention(f, auto, ask))[4] ?? { options: auto, notes: [] };
    expect(asked).toEqual([0, 128, 192, 0, 256]);
    expect(options).toEqual({ on: "cuda", attention: "ops" });
    expect(notes.map(({ found }) => found)).toEqual(["too large"]);
  });

  it("is not asked for programs without attention, for other options and on the CPU", () => {
    const ask = (): never => {
      throw new Error("asked");
    };
    const f = new Fusion();
    f.output(f.input([2]));
    expect(chooseAttention(f, auto, ask).notes).toEqual([]);
    for (const options of [
      { on: "cuda", attention: "ops" },
      { on: "cuda", attention: "fused" },
      { ...auto, on: "cpu" },
    ] as const) {
      expect(chooseAttention(program({}), options, ask)).toEqual({ options, notes: [] });
    }
    expect(kinds(program({ dtype: "float" }), { on: "cpu", attention: "auto" })).toEqual(["Sdpa"]);
  });

  it("is asked on GPUs without the option", () => {
    const { options, notes } = chooseAttention(program({}), { on: "cuda" }, () => "cuDNN is not installed");
    expect(options).toEqual({ on: "cuda", attention: "ops" });
    expect(notes.map(({ found }) => found)).toEqual(["cuDNN is not installed"]);
    expect(kinds(program({}), { on: "cuda" })).toEqual(["Sdpa"]);
  });

  it("is noted by the executor", async () => {
    const backend = { ...cpuBackend, name: "cuda", attentionObstacle: () => "cuDNN is not installed" };
    const executor = await MultiDeviceExecutor.create(program({}), { devices: 1, on: backend, attention: "auto" });
    expect(executor.notes.map(({ found }) => found)).toEqual(["cuDNN is not installed"]);
    expect(executor.hostProgram(0).body.map(({ kind }) => kind)).not.toContain("Sdpa");
    await executor.close();
  });
});
