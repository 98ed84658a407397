/**
 * Dumps of nvFuser's FusionExecutorCache path: loops over chunks of split axes, with ShardByStream, a stream per
 * iteration, CollectivePermute and memory that is allocated and freed in every iteration.
 */
import { describe, expect, it } from "vitest";
import { compile, parse, print } from "@braid-compiler/braid";
import { parseContainers } from "@braid-compiler/braid/internals";
import { walk } from "../../../src/host/traverse.ts";
import { dumpText, otherPathDumps, otherPathDumpsOf } from "./dump-cases.ts";
import { expectDumpRuns, hostsOf } from "./run-dump.ts";

/** Without the marks of axes that an rFactor made, which nothing depends on, and with one spelling of blanks. */
function bare(text: string): string {
  return text
    .replaceAll("}rf", "}")
    .replaceAll("stream_index=", "stream_index = ")
    .replaceAll(/0x[0-9a-f]+/gu, "0x")
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n")
    .trim();
}

describe.each(otherPathDumps)("$file", (dump) => {
  const { file, style, devices, sizes } = dump;
  const text = dumpText(file);

  // Braid prints the views of chunks that this one leaves out.
  it.skipIf(file === "fec-matmul.hir")("prints back", () => {
    const containers = parseContainers(text);
    const printed = containers.map(({ program }) => print(program, { style, transforms: false }).trim()).join("\n\n");
    expect(bare(printed)).toBe(bare(text));
  });

  it("reads back from what Braid prints in addition", () => {
    for (const { program } of parseContainers(text)) {
      const printed = print(program, { style });
      expect(print(parse(printed, { roots: "positions" }), { style })).toBe(printed);
    }
  });

  it("is verified", () => {
    expect(compile(hostsOf(dump), { devices, sizes }).report.findings).toEqual([]);
  });

  it("computes what the Fusion does", async () => {
    await expectDumpRuns(dump);
  });
});

describe.each([[[7, 7]], [[1, 1]], [[2, 5]], [[0, 0]]] as const)(
  "at sizes of unequal chunks and shares, %o",
  (rows) => {
    it.each(otherPathDumpsOf(rows))("$file is verified and computes what the Fusion does", async (dump) => {
      const { devices, sizes } = dump;
      expect(compile(hostsOf(dump), { devices, sizes }).report.findings).toEqual([]);
      await expectDumpRuns(dump);
    });
  },
);

const loop = dumpText("fec-row-parallel-linear.hir");

describe("a loop over chunks", () => {
  const without = (line: RegExp): string => {
    const lines = loop.split("\n");
    const found = lines.findIndex((each) => line.test(each));
    expect(found).toBeGreaterThan(0);
    return lines.toSpliced(found, 1).join("\n");
  };
  const findings = (text: string): readonly string[] => {
    const host = parse(text);
    return compile([host, host], { devices: 2, sizes: { i0: 6 } }).report.findings.map(({ code }) => code);
  };

  it.each([
    ["the Wait", /Wait\(/u, "transfer-not-waited"],
    ["the Synchronize after the loop", /^ {4}Synchronize\(Stream i535/u, "data-race"],
  ])("is refused without %s", (_, line, code) => {
    expect(findings(without(line))).toContain(code);
  });

  it("has memory of its own in every iteration", () => {
    const program = compile(hostsOf({ ...(otherPathDumps[1] ?? fail()) }), { devices: 2, sizes: { i0: 6 } }).recorded;
    const [rank] = program.ranks;
    expect(rank?.commands.filter(({ kind }) => kind === "alloc")).toHaveLength(3);
    expect(rank?.commands.filter(({ kind }) => kind === "free")).toHaveLength(3);
  });

  it("takes chunks of any size", () => {
    const host = parse(loop);
    for (const size of [0, 1, 7]) {
      const { recorded } = compile([host, host], { devices: 2, sizes: { i0: size } });
      const rows = recorded.kernels.flatMap(({ inputs }) => inputs[0]?.shape[0] ?? []);
      expect([...new Set(rows)].sort((a, b) => a - b)).toEqual(size === 7 ? [1, 3] : size === 1 ? [1] : []);
    }
  });
});

it("one rank's CollectivePermute does not serve all ranks", () => {
  const [first = ""] = dumpText("written/fec-permute.hir").split("\n\n");
  expect(parseContainers(first)).toHaveLength(1);
  expect(() => hostsOf({ ...(otherPathDumps.at(-1) ?? fail()), text: first })).toThrow("peers of CollectivePermute 41");
});

it("a loop reads and writes chunks, whether or not a statement says so", () => {
  const [loopOf] = parse(dumpText("fec-matmul.hir")).body.flatMap((each) => (each.kind === "ForLoop" ? [each] : []));
  expect(loopOf?.body.map(({ kind }) => kind)).toEqual(["ShardByStream", "ShardByStream", "Matmul"]);
});

it("scalar statements keep their names, and a kernel of peers reads them", () => {
  const [first] = parseContainers(dumpText("written/fec-permute.hir"));
  const defined = walk(first?.program.body ?? []).flatMap((each) => (each.kind === "Define" ? [each.name] : []));
  expect(defined).toEqual(["i30", "i31", "i32", "i33", "i34"]);
});

it("memory for peers is read, short and long", () => {
  const tensor = "T0_sym_float[iS0{4}]";
  const text = (statement: string): string =>
    `%HostIrContainer { () -> () :\n  ${tensor} = ${statement}\n} // %HostIrContainer`;
  const long = `ALLOCATE(buffer=${tensor}, mem_type=symmetric, size=4, zero_init=false, resets_to_zero=false)`;
  for (const statement of ["ALLOCATE(mem_type=symmetric, zero_init=false)", long]) {
    expect(parse(text(statement)).body).toMatchObject([{ kind: "Allocate", memory: "symmetric" }]);
    expect(print(parse(text(statement))).trim()).toBe(text(statement));
  }
});

function fail(): never {
  throw new Error("the dump is among the fixtures");
}

describe("axes of constant extents", () => {
  const logicalOf = (axes: string, ...others: readonly string[]): number | undefined => {
    const tensors = [axes, ...others].map((each, i) => `T${i}_g_float[${each}] (DeviceMesh{0 1})`);
    const statement = "T9_g_float[iS99{2}] (DeviceMesh{0 1}) = ALLOCATE(mem_type=global, zero_init=false)";
    const text = `%HostIrContainer { (${tensors.join(", ")}) -> () :\n  ${statement}\n} // %HostIrContainer`;
    return parse(text).tensors[0]?.domain.logical.length;
  };

  it.each([
    // No number below is missing, so nothing was split before.
    ["two axes", "ideviceIdx.x0{2}, iS1{4}", [], 2],
    ["parts of one", "ideviceIdx.x1{2}, iS2{4}", [], 1],
    ["parts of one, with a swizzle", "ideviceIdx.x3{2}, iS2{4}", ["iS0{4}"], 1],
    // The parts of the other tensor are numbered after all logical axes.
    ["two axes before the first part", "ideviceIdx.x2{2}, iS3{4}", ["istreamIdx5{2}, iS6{( ceilDiv(i0, 2) )}"], 2],
    ["parts after the first", "ideviceIdx.x7{2}, iS8{4}", ["istreamIdx5{2}, iS6{( ceilDiv(i0, 2) )}"], 1],
  ])("%s", (_, axes, others, rank) => {
    expect(logicalOf(axes, ...others)).toBe(rank);
  });
});
