/**
 * The fusions behind nvFuser's dumps print as those dumps, whole, but for the numbers of expressions: T, axis, scalar
 * and stream numbers follow nvFuser's creation order. Where nvFuser's lowering of the time differs from Braid's, the
 * dump is edited to Braid's form, line by line, before it is compared.
 */
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import {
  broadcast,
  DeviceMesh,
  Fusion,
  linear,
  lower,
  type LowerOptions,
  matmul,
  print,
  set,
  sum,
  type TensorView,
} from "@braid-compiler/braid";
import { normaliseDump } from "../support/normalise-dump.ts";

const folder = join(dirname(fileURLToPath(import.meta.url)), "../fixtures/dumps");

function dumpOf(name: string): string {
  return readFileSync(join(folder, `${name}.hir`), "utf8").replaceAll(/\n\)$/gmu, ")");
}

function onMesh(devices: number, tensors: readonly TensorView[]): void {
  for (const tensor of tensors) tensor.setDeviceMesh(DeviceMesh.range(devices));
}

/** Sets in a row, each with Stream on its first axis where `streams` says so. */
function sets(streams: readonly boolean[]): Fusion {
  const f = new Fusion();
  let last = f.input([null, null]);
  for (const isStream of streams) {
    last = set(last);
    if (isStream) last.axis(0).parallelize("Stream");
  }
  f.output(last);
  return f;
}

function allgatherLinear(shape: readonly number[], devices: number, sharded: number): Fusion {
  const f = new Fusion();
  const x = f.input(shape, "bfloat16");
  const weight = f.input([1024, 1024], "bfloat16");
  const bias = f.input([1024], "bfloat16");
  const y = linear(x, weight, bias);
  f.output(y);
  onMesh(devices, [x, weight, bias, y]);
  x.axis(sharded).parallelize("DIDx");
  y.axis(0).parallelize("Stream");
  return f;
}

interface DumpedFusion {
  /** test/fixtures/dumps/<name>.hir */
  readonly name: string;
  readonly style: "2025-04" | "2025-05" | "2025-10";
  readonly options?: LowerOptions;
  readonly build: () => Fusion;
  /** Braid's form of the dump. */
  readonly edit?: (dump: string) => string;
}

/**
 * The one loop of each pipeline as two: the caller's stream is saved before the loop, and waited for in a loop of its
 * own.
 */
function inTwoLoops(dump: string): string {
  const loop =
    /^(?<allocated>(?: {2}T\S.* = ALLOCATE\(.*\n)*)(?<header> {2}FOR .*:\n)(?<get> {4}GetCurrentStream .*\n)?(?<set> {4}SetCurrentStream .*\n)(?<wait> {4}Synchronize .*\n)/gmu;
  return dump.replaceAll(loop, (...match) => {
    const { allocated, header, get = "", set: change, wait } = match.at(-1) as Record<string, string>;
    return `${allocated}${get.slice(2)}${header}${change}${wait}${header}${change}`;
  });
}

/** The drafts' names in those of 2025-04, and their slices as its statement for slices. */
function inNamesOf2025(dump: string): string {
  return dump
    .replaceAll(/\bi(?:10|83)\b/gu, "StreamIdx")
    .replaceAll(/iStream(?=\d)/gu, "iStreamIdx")
    .replaceAll("= select(", "= HirAliasSelect(");
}

/**
 * The draft lowered matmuls by hand. It saved the caller's stream before it allocated, left the gathered tensor and its
 * loop without Stream, its slices local and without the reduced axis, and did not allocate the slice once more.
 */
function asLoweredLater(dump: string): string {
  const get = "  GetCurrentStream into Stream 0\n";
  const gathered = "T6_g___bfloat[iS19{2}, iS20{64}, iS21{1024}] (DeviceMesh{0 1})";
  return dump
    .replace(get, "")
    .replace("  FOR ", `${get}  FOR `)
    .replaceAll("FOR StreamIdx in iS0{8}", "FOR StreamIdx in iStreamIdx12{8}")
    .replaceAll("iS12{8}", "iStreamIdx12{8}")
    .replaceAll(/T(?=[56]_)\d_l/gu, (name) => name.replace("_l", "_g"))
    .replaceAll("iS24{1024}] ", "iS24{1024}, rS25{1024}] ")
    .replace(
      "    Communication ",
      `    ${gathered} = ALLOCATE(buffer=${gathered}, mem_type=global, size=131072, zero_init=false, resets_to_zero=false)\n    Communication `,
    );
}

/** In the dump both Waits stand in the branch, that of the send first. Later it came to the end of the iteration. */
function withLateWait(dump: string): string {
  const condition = /^ {4}IF .*\n/mu.exec(dump)?.[0] ?? "";
  const wait = "      Wait Communication 38\n";
  return dump
    .replace(wait, "")
    .replace(/^ {4}SetCurrentStream to Stream 0\n/mu, (restore) => `${condition}    ELSE:\n${wait}${restore}`);
}

const dumped: readonly DumpedFusion[] = [
  { name: "e1-single-set", style: "2025-04", build: () => sets([true]), edit: inTwoLoops },
  { name: "e1-two-sets", style: "2025-04", build: () => sets([true, true]), edit: inTwoLoops },
  { name: "e1-three-sets", style: "2025-04", build: () => sets([true, false, true]), edit: inTwoLoops },
  {
    name: "draft-reduction",
    style: "2025-04",
    build: () => {
      const f = new Fusion();
      const y = sum(f.input([null, null, null]), [2]);
      f.output(y);
      y.axis(0).parallelize("Stream");
      return f;
    },
    edit: (dump) => inTwoLoops(inNamesOf2025(dump)),
  },
  {
    name: "e2-allgather",
    style: "2025-05",
    build: () => {
      const f = new Fusion();
      const x = f.input([null, null]);
      const y = set(x);
      f.output(y);
      onMesh(8, [x, y]);
      x.axis(1).parallelize("DIDx");
      y.axis(0).parallelize("Stream");
      return f;
    },
  },
  {
    name: "e2-allreduce",
    style: "2025-05",
    build: () => {
      const f = new Fusion();
      const x = f.input([null, null, null]);
      const y = sum(x, [1]);
      f.output(y);
      onMesh(8, [x, y]);
      x.axis(1).parallelize("DIDx");
      y.axis(0).parallelize("Stream");
      return f;
    },
  },
  {
    name: "e2-reduce-scatter",
    style: "2025-05",
    build: () => {
      const f = new Fusion();
      const x = f.input([null, null, null, null]);
      const y = sum(x, [1]);
      f.output(y);
      onMesh(8, [x, y]);
      x.axis(1).parallelize("DIDx");
      y.axis(0).parallelize("Stream");
      y.axis(2).parallelize("DIDx");
      return f;
    },
  },
  {
    name: "e2-allgather-matmul",
    style: "2025-05",
    build: () => {
      const f = new Fusion();
      const a = f.input([null, null, null, null]);
      const b = f.input([null, null]);
      const c = matmul(a, b);
      f.output(c);
      onMesh(8, [a, b, c]);
      a.axis(1).parallelize("DIDx");
      c.axis(0).parallelize("Stream");
      return f;
    },
  },
  {
    name: "e2-matmul-allreduce",
    style: "2025-05",
    build: () => {
      const f = new Fusion();
      const a = f.input([null, null, null, null]);
      const b = f.input([null, null, null]);
      const partial = matmul(a, b);
      const c = sum(partial, [1]);
      f.output(c);
      onMesh(8, [a, b, partial, c]);
      a.axis(1).parallelize("DIDx");
      b.axis(0).parallelize("DIDx");
      partial.axis(0).parallelize("Stream");
      partial.axis(1).parallelize("DIDx");
      c.axis(0).parallelize("Stream");
      return f;
    },
  },
  {
    name: "e2-matmul-reduce-scatter",
    style: "2025-05",
    build: () => {
      const f = new Fusion();
      const a = f.input([null, null, null, null, null]);
      const b = f.input([null, null, null]);
      const spread = broadcast(b, [true, false, true, false, false]);
      const partial = matmul(a, spread);
      const c = sum(partial, [1]);
      f.output(c);
      onMesh(8, [a, b, spread, partial, c]);
      a.axis(1).parallelize("DIDx");
      b.axis(0).parallelize("DIDx");
      spread.axis(1).parallelize("DIDx");
      partial.axis(0).parallelize("Stream");
      partial.axis(1).parallelize("DIDx");
      c.axis(0).parallelize("Stream");
      c.axis(2).parallelize("DIDx");
      return f;
    },
  },
  {
    name: "e2b-allgather-p2p-nccl",
    style: "2025-05",
    options: { p2p: "linear" },
    build: () => {
      const f = new Fusion();
      const x = f.input([null, null]);
      const y = set(x);
      f.output(y);
      onMesh(8, [x, y]);
      x.axis(0).parallelize("DIDx");
      y.axis(0).parallelize("Stream");
      return f;
    },
  },
  {
    name: "e2b-allgather-matmul-p2p-nccl",
    style: "2025-05",
    options: { p2p: "linear" },
    build: () => {
      const f = new Fusion();
      const a = f.input([null, null, null]);
      const b = f.input([null, null]);
      const c = matmul(a, b);
      f.output(c);
      onMesh(8, [a, b, c]);
      a.axis(0).parallelize("DIDx");
      c.axis(0).parallelize("Stream");
      return f;
    },
  },
  {
    name: "draft-allgather-linear-one-loop",
    style: "2025-05",
    build: () => allgatherLinear([8, 2, 64, 1024], 2, 1),
    edit: (dump) => asLoweredLater(inTwoLoops(inNamesOf2025(dump))),
  },
  {
    name: "draft-allgather-linear",
    style: "2025-05",
    build: () => allgatherLinear([8, 2, 64, 1024], 2, 1),
    edit: (dump) => asLoweredLater(inNamesOf2025(dump)),
  },
  {
    name: "e3-allgather-linear-p2p-cuda",
    style: "2025-10",
    options: { backend: "cuda" },
    build: () => allgatherLinear([8, 128, 1024], 8, 0),
    edit: withLateWait,
  },
];

/** nvFuser neither frees nor shrinks. */
const unchanged = { deallocate: false, shrink: false, nvfuserLimits: true } as const;

describe.each(dumped)("$name", ({ style, options = {}, build, name, edit = (dump) => dump }) => {
  it("prints as nvFuser printed it", () => {
    const host = lower(build(), { ...unchanged, ...options });
    const printed = normaliseDump(print(host, { style }));
    expect(printed.text).toBe(normaliseDump(edit(dumpOf(name))).text);
  });
});

it("index definitions are the dump's, but for those that no statement uses by name", () => {
  const host = lower(allgatherLinear([8, 128, 1024], 8, 0), { ...unchanged, backend: "cuda" });
  const [own, dump] = [print(host), dumpOf("e3-allgather-linear-p2p-cuda")].map(
    (text) => normaliseDump(text).definitions,
  );
  // nvFuser also lists parts of sizes, and the index of the stream, which prints in full.
  const unused = ["( streamIdx % numberOfStreams )", "( 8 * 128 )", "( ( 8 * 128 ) * 1024 )"];
  expect([...(dump ?? [])].toSorted()).toEqual([...(own ?? []), ...unused].toSorted());
});
