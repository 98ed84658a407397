/**
 * Diagnostics for dumps that cannot be parsed. Each case is a dump with one mistake, and fixtures/dumps/messages has
 * its diagnostic. `npx vitest run test/host/parse/diagnostics.test.ts -u` regenerates them.
 */
import path from "node:path";
import { describe, expect, it } from "vitest";
import { DiagnosticError, parse, type ParseOptions } from "@braid-compiler/braid";
import { parseContainers } from "@braid-compiler/braid/internals";
import { rankContainers } from "../../../src/host/parse/rank-containers.ts";
import { dumpText } from "./dump-cases.ts";

type Case = readonly [title: string, text: () => string, options?: ParseOptions & { readonly container?: number }];

/** A dump of the fixtures with `from` replaced by `to`. */
function changed(file: string, from: string | RegExp, to: string): () => string {
  return () => {
    const text = dumpText(file);
    const result = text.replace(from, () => to);
    if (result === text) throw new Error(`${file} has no ${String(from)}`);
    return result;
  };
}

const sets = "e1-single-set.hir";
const matmul = "e2-allgather-matmul.hir";
const reduce = "e2-allreduce.hir";
const exchange = "e2b-allgather-p2p-nccl.hir";
const handles = "e3-allgather-linear-p2p-cuda.hir";
const unit = "written/host-unit.hir";
const container = (signature: string, ...lines: readonly string[]): string =>
  [`%HostIrContainer { ${signature} :`, ...lines.map((line) => `  ${line}`), "} // %HostIrContainer", ""].join("\n");

const syntax: readonly Case[] = [
  ["a text without a container", () => "NCCL version 2.21.5\nrank 0 is ready\n"],
  [
    "a definition",
    () => "def nvfuser_fusion(fd : FusionDefinition) -> None :\n    tv0 = fd.define_tensor(shape=[8])\n",
  ],
  ["Fusion IR", () => "Inputs:\n  T0_g_float[iS0{8}]\n%kernel {\n}\n"],
  ["an empty text", () => " \n"],
  ["a text that is cut off in a line", () => dumpText(matmul).slice(0, 1500)],
  ["a text that is cut off after a line", () => dumpText(sets).split("\n").slice(0, 6).join("\n")],
  ["a line of other output inside", changed(sets, "  FOR StreamIdx", "[W socket.cpp] timed out\n  FOR StreamIdx")],
  ["a line that is indented too far", changed(sets, "    Synchronize Stream 0", "      Synchronize Stream 0")],
  ["a line that is indented by an odd number", changed(sets, "    Synchronize Stream 0", "   Synchronize Stream 0")],
  ["an ELSE without an IF", changed(sets, "    SetCurrentStream to Stream 0", "  ELSE:")],
  ["an unknown statement", changed(sets, "Synchronize Stream 0", "SynchroniseStream 0")],
  ["an ALLOCATE without its size", changed(sets, "size=( i0 * i2 ), ", "")],
  ["a size that is cut off", changed(sets, "( i0 * i2 )", "( i0 * ")],
  ["a loop without its colon", changed(sets, "iStreamIdx2{i0}:", "iStreamIdx2{i0}")],
  ["a tensor without its bracket", changed(sets, "iS3{i2}]) :", "iS3{i2}) :")],
  ["a mesh that is cut off", changed(reduce, "DeviceMesh{0 1 2 3 4 5 6 7}", "DeviceMesh{0 1 2 3")],
  ["a type of communication that does not exist", changed(reduce, "type=Allreduce", "type=AllReduce")],
  ["a backend that does not exist", changed(reduce, "backend=NCCL", "backend=GLOO")],
  ["a number that is no number", changed(reduce, "Communication 39 (", "Communication x (")],
  ["a number that is too large", changed(reduce, /39/gu, "99999999999999999999")],
  ["a Wait for something else", changed(reduce, "Wait Communication 39", "Wait Stream 39")],
  ["a float as a size", changed(sets, "( i0 * i2 )", "1.5")],
];

const unsupported: readonly Case[] = [
  ["an op that Braid does not have", changed(sets, "Set( T2_l_float[iS4{i2}], cache_op=Streaming )", "topk(T2, T3)")],
  [
    "a scalar operand",
    () => container("(T0_g_float[iS0{8}]) -> ()", "T1_g_float[iS1{8}]", "   = T0_g_float[iS0{8}]", "   * d4;"),
  ],
  [
    "an operator between tensors",
    () =>
      container(
        "(T0_g_float[iS0{8}]) -> ()",
        "T1_g_float[iS1{8}]",
        "   = T0_g_float[iS0{8}]",
        "   % T0_g_float[iS0{8}];",
      ),
  ],
  ["a statement that moves tokens", () => container("() -> ()", "Dispatch 3 (num_experts=4)")],
  ["a statement that moves tokens back", () => container("() -> ()", "Combine 3 (backend=NCCL)")],
  [
    "a view of peers' memory",
    () => container("(T0_g_float[iS0{8}]) -> ()", "T1_g_float[iS1{8}] = SymmetricContiguousView(T0_sym_float[iS0{8}])"),
  ],
  ["a header of before the dump option", () => dumpText("draft-gather.hir")],
  ["a dtype", changed(sets, "T0_g_float", "T0_g___e8m0")],
  ["memory of kernels", changed(sets, "T0_g_float", "T0_s_float")],
  ["a parallel type of kernels", changed(sets, "iS0{i0}", "iblockIdx.x0{i0}")],
  ["an iteration type", changed(sets, "iS0{i0}", "nS0{i0}")],
  ["an axis that does not start at 0", changed(sets, "iS0{i0}", "iS0{2 : 6 : 4}")],
  ["a scalar function", changed(sets, "( StreamIdx % numberOfStreams )", "( gcd(StreamIdx, 4) )")],
  ["memory that is zeroed again", changed(sets, "resets_to_zero=false", "resets_to_zero=true")],
  ["a reduction op", changed(unit, "op = add", "op = bitwise_or")],
  [
    "a slice without a step",
    () =>
      container("(T0_g_float[iS0{8}]) -> ()", "T1_g_float[iS1{4}]", "   = slice( T0_g_float[iS0{8}], { {0, 8, 0} } )"),
  ],
  [
    "aliases of another shape",
    changed(sets, "} // %HostIrContainer", "\nAliases:{\nT2 -> T0\n}\n} // %HostIrContainer"),
  ],
  ["a number far out", changed(sets, /T1_/gu, "T123456_")],
  ["parentheses without end", changed(sets, "size=", `size=${"( ".repeat(80)}`)],
];

const incomplete: readonly Case[] = [
  [
    "a slice with an unknown bound",
    () =>
      container("(T0_g_float[iS0{8}]) -> ()", "T1_g_float[iS1{4}]", "   = slice( T0_g_float[iS0{8}], { {0, i7, 1} } )"),
  ],
  [
    "a chunk of no axis",
    () =>
      container(
        "(T0_g_float[iS0{8}]) -> ()",
        "FOR i5 from 0 to 2:",
        "  T1_g_float[iS1{4}] = ShardByStream(T0_g_float[iS0{8}], stream_index=i5)",
      ),
  ],
  [
    "a value that is defined in a loop before",
    () =>
      container(
        "(T0_g_float[iS0{8}]) -> ()",
        "FOR i5 from 0 to 2:",
        "  i6 = i5 + 1;",
        "T1_l_float[]",
        "   = HirAliasSelect( T0_g_float[iS0{8}], axis = iS0{8}, index = i6 )",
      ),
  ],
  ["an index without a definition", changed(handles, "  i84 = i82 % 8;\n", "")],
  ["an index whose parts have no definition", changed(handles, "  i82 = rank + streamIdx;\n", "")],
  ["a dump without index definitions", changed(handles, /\nIndex definitions:[^]*$/u, "")],
  ["a split axis", changed(matmul, /iS2\{i3\}/gu, "iS2{( ceilDiv(i3, 2) )}")],
  ["a slice along an axis that is not printed", changed(sets, "axis = iS0{i0}", "axis = iS9{i0}")],
  ["a unit without its body", changed(unit, /\nHostUnit0: [^]*\/\/ %kernel\n/u, "")],
  [
    "a reduction whose output does not show the axis",
    changed(unit, /T9_g___bfloat\[iS18\{i0\}, rS19\{i2\}\]/gu, "T9_g___bfloat[iS18{i0}]"),
  ],
  [
    "a permute whose output does not show the order",
    changed(unit, /T5_l___bfloat\[iS11\{i4\}, iS10\{i3\}\]/gu, "T5_l___bfloat[iS10{i4}, iS11{i3}]"),
  ],
  [
    "groups without numbers",
    () =>
      dumpText("written/unnumbered-coalescing.hir").replace(
        "      EndCoalescing\n",
        "      EndCoalescing\n      StartCoalescing\n      EndCoalescing\n",
      ),
  ],
];

const contradictions: readonly Case[] = [
  ["a tensor in two ways", changed(sets, "= Set( T2_l_float[iS4{i2}]", "= Set( T2_l_float[iS4{i0}]")],
  ["an axis in two tensors", changed(sets, /iS4\{i2\}/gu, "iS3{i2}")],
  ["an axis twice in a tensor", changed(sets, "[iS0{i0}, iS1{i2}]", "[iS0{i0}, iS0{i2}]")],
  [
    "memory for another tensor",
    changed(
      sets,
      "ALLOCATE(buffer=T1_g_float[iStreamIdx2{i0}, iS3{i2}]",
      "ALLOCATE(buffer=T0_g_float[iS0{i0}, iS1{i2}]",
    ),
  ],
  ["a definition in a circle", changed(handles, "i82 = rank + streamIdx;", "i82 = rank + i84;")],
  [
    "definitions that double",
    () =>
      `${dumpText(handles).replace("i82 = rank + streamIdx;", "i82 = i200 + i200;")}${Array.from({ length: 60 }, (_, i) => `  i${200 + i} = i${201 + i} + i${201 + i};\n`).join("")}  i260 = rank + 1;\n`,
  ],
  ["two bodies of a unit", () => dumpText(unit).replace(/\nHostUnit0: [^]*\/\/ %kernel\n/u, (body) => body + body)],
  ["a mesh with a device twice", changed(reduce, /DeviceMesh\{0 1 2/gu, "DeviceMesh{0 1 1")],
  [
    "a root outside the team",
    changed(
      "e2-allgather.hir",
      "type=Allgather, team=(0 1 2 3 4 5 6 7)",
      "type=Broadcast, team=(0 1 2 3 4 5 6 7), root=8",
    ),
  ],
  [
    "flags for other axes",
    () =>
      container(
        "(T0_g_float[iS0{1}]) -> ()",
        "T1_g_float[]",
        "   = squeeze( T0_g_float[iS0{1}], flags = {true, false} )",
      ),
  ],
];

const rules: readonly Case[] = [
  ["a Wait for nothing", changed(reduce, "Wait Communication 39", "Wait Communication 40")],
  ["a group that is not closed", changed(exchange, "      EndCoalescing 32\n      Wait Communication 32\n", "")],
  ["a tensor that is never bound", changed(sets, /\n {4}T2_l_float\[iS4\{i2\}\]\n.*index = StreamIdx \)/u, "")],
  ["extents that do not fit", changed(handles, /iS4\{1024\}/gu, "iS4{512}")],
];

const containers: readonly Case[] = [
  ["two containers", () => dumpText(sets) + dumpText(matmul)],
  ["a container that is not there", () => dumpText(sets), { container: 1 }],
];

const groups = { syntax, unsupported, incomplete, contradictions, rules, containers };

function messagesFile(name: string): string {
  return path.resolve(import.meta.dirname, `../../fixtures/dumps/messages/${name}.txt`);
}

function messageOf([, text, options]: Case): string {
  try {
    parse(text(), { file: "dump.hir", ...options });
  } catch (error) {
    if (error instanceof DiagnosticError) return error.message;
    throw error;
  }
  throw new Error("read without an error");
}

describe.each(Object.entries(groups))("%s", (name, cases) => {
  it.each(cases.map((each) => [each[0], each] as const))("%s", (_, each) => {
    expect(messageOf(each)).toMatch(/^error\[/u);
  });

  it("messages", async () => {
    const text = cases.map((each) => `## ${each[0]}\n\n${messageOf(each)}\n`).join("\n");
    await expect(text).toMatchFileSnapshot(messagesFile(name));
  });
});

it("lines and columns are the file's, after a launcher's prefix too", () => {
  const text = dumpText("written/launcher-log.txt").replace("type=Allreduce", "type=AllReduce");
  const lines = text.split("\n");
  const line = lines.findIndex((each) => each.includes("AllReduce"));
  const column = (lines[line] ?? "").indexOf("AllReduce");
  expect(() => parse(text, { file: "run.log" })).toThrow(`at: run.log:${line + 1}:${column + 1}\n`);
});

describe("which container is whose", () => {
  const file = "ranks.hir";
  const mesh = (text: string): string => `T0_g_float[iS0{4}] (DeviceMesh{${text}})`;
  const request = (text: string, devices: number | null, chosen: number | null): readonly string[] =>
    rankContainers(parseContainers(text), { file, devices, container: chosen }).map(
      ({ program }) => program.tensors[0]?.mesh?.toString() ?? "no mesh",
    );

  it("one for all ranks, where every mesh and every team has all devices", () => {
    expect(request(container(`(${mesh("0 1 2")}) -> ()`), null, null)).toEqual(Array(3).fill("DeviceMesh{0 1 2}"));
    expect(request(container("(T0_g_float[iS0{4}]) -> ()"), null, null)).toEqual(["no mesh"]);
    expect(request(container("(T0_g_float[iS0{4}]) -> ()"), 1, null)).toEqual(["no mesh"]);
  });

  it("one per rank, in order, or the one that is asked for", () => {
    const two = container(`(${mesh("0")}) -> ()`) + container(`(${mesh("1")}) -> ()`);
    expect(request(two, null, null)).toEqual(["DeviceMesh{0}", "DeviceMesh{1}"]);
    expect(request(two, null, 1)).toEqual(["DeviceMesh{1}", "DeviceMesh{1}"]);
    expect(request(two, 3, 0)).toEqual(Array(3).fill("DeviceMesh{0}"));
  });

  const refused: readonly (readonly [title: string, text: string, devices: number | null, chosen: number | null])[] = [
    ["a mesh of some devices", container(`(${mesh("1 2")}) -> ()`), null, null],
    ["a mesh of fewer devices than asked for", container(`(${mesh("0 1")}) -> ()`), 4, null],
    ["no mesh on several devices", container("(T0_g_float[iS0{4}]) -> ()"), 2, null],
    ["a device that no run has", container(`(${mesh("4294967296")}) -> ()`), null, null],
    ["fewer devices than the meshes name", container(`(${mesh("0 1 2")}) -> ()`), 2, null],
    [
      "a team of some devices",
      container(
        `(${mesh("{0 1}{2 3}")}) -> (T1_g_float[iS1{4}] (DeviceMesh{{0 1}{2 3}}))`,
        "T1_g_float[iS1{4}] (DeviceMesh{{0 1}{2 3}}) = ALLOCATE(buffer=T1_g_float[iS1{4}] (DeviceMesh{{0 1}{2 3}}), mem_type=global, size=4, zero_init=false, resets_to_zero=false)",
        `Communication 1 (type=Allreduce, team=(0 1), input=${mesh("{0 1}{2 3}")}, output=T1_g_float[iS1{4}] (DeviceMesh{{0 1}{2 3}}), backend=NCCL)`,
        "Wait Communication 1",
      ),
      null,
      null,
    ],
    [
      "an op on some devices",
      container(
        `(${mesh("1 2")}) -> ()`,
        `T1_g_float[iS1{4}] (DeviceMesh{1 2})\n     = Set( ${mesh("1 2")}, cache_op=Streaming )`,
      ),
      null,
      null,
    ],
    ["two of four containers", container(`(${mesh("0 1")}) -> ()`).repeat(2), 4, null],
    ["containers that are not one per rank", container(`(${mesh("0 1 2")}) -> ()`).repeat(2), null, null],
    ["a container that is not there", container(`(${mesh("0 1 2")}) -> ()`), null, 3],
  ];

  it("and what fits no rank is refused", async () => {
    const messages = refused.map(([title, text, devices, chosen]) => {
      try {
        request(text, devices, chosen);
      } catch (error) {
        if (error instanceof DiagnosticError) return `## ${title}\n\n${error.message}\n`;
        throw error;
      }
      throw new Error(`${title} is not refused`);
    });
    await expect(messages.join("\n")).toMatchFileSnapshot(messagesFile("ranks"));
  });
});
