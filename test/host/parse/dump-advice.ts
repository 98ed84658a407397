/** Refused dumps, each with the advice of its diagnostic and the edit that it asks for. */
import type { ParseOptions } from "@braid-compiler/braid";
import { dumpText } from "./dump-cases.ts";

export interface DumpAdvice {
  /** The fix, or its beginning. */
  readonly fix: string;
  readonly refused: string;
  readonly edit: (text: string) => string;
  readonly options?: ParseOptions;
}

const a = "T0_g_float[iS0{2}, iS1{3}] (DeviceMesh{0 1})";
const one = "T2_g_float[iS4{1}, iS5{1}] (DeviceMesh{0 1})";
const b = "T1_g_float[iS2{2}, iS3{3}] (DeviceMesh{0 1})";

function container(lines: readonly string[], signature = `(${a}) -> (${b})`): string {
  return [`%HostIrContainer { ${signature} :`, ...lines.map((line) => `  ${line}`), "} // %HostIrContainer"].join("\n");
}

const communication = (type: string): string =>
  `Communication 3 (type=${type}, team=(0 1), input=${a}, output=${b}, backend=NCCL)\n  Wait(Communication 3)`;
const unit = "written/host-unit.hir";
const line = /^ {2}\S.*$/mu;

export const dumpAdvice: readonly DumpAdvice[] = [
  {
    fix: "exchange fixed shares by a Communication of type AllToAll instead",
    refused: container([`Dispatch 3 (num_experts=4, backend=NCCL, in=${a}, out=${b})`]),
    edit: (text) => text.replace(line, `  ${communication("AllToAll")}`),
  },
  {
    fix: "gather the tensor by a Communication of type Allgather instead",
    refused: container([`${b} = SymmetricContiguousView(${a})`]),
    edit: (text) => text.replace(line, `  ${communication("Allgather")}`),
  },
  {
    fix: "write zero_init=true and resets_to_zero=false",
    refused: container([`${b} = ALLOCATE(buffer=${b}, mem_type=global, size=6, zero_init=false, resets_to_zero=true)`]),
    edit: (text) => text.replace("zero_init=false, resets_to_zero=true", "zero_init=true, resets_to_zero=false"),
  },
  {
    fix: "write its value, or make it an input with an axis of extent 1 for each axis of the output",
    refused: container([b, `   = ${a}`, "   * d4;"]),
    edit: (text) => text.replace("d4;", "double(2);"),
  },
  {
    fix: "write its value, or make it an input with an axis of extent 1 for each axis of the output",
    refused: container([b, `   = ${a}`, "   * d4;"]),
    edit: (text) => text.replaceAll(/d4;/gu, `${one};`).replace(`(${a})`, `(${a}, ${one})`),
  },
  {
    fix: "write the op with these",
    refused: container([b, `   = softsign(${a});`]),
    edit: (text) => text.replace("softsign", "tanhf"),
  },
  {
    fix: "write the step as a number",
    refused: container([b, `   = slice( ${a}, { {0, 2, 1} {0, 3, -1} } )`]),
    edit: (text) => text.replace("-1", "1"),
  },
  {
    fix: "dump with index definitions",
    refused: container([
      `T2_l_float[iS4{3}] (DeviceMesh{0 1})`,
      `   = HirAliasSelect( ${a}, axis = iS0{2}, index = i7 )`,
    ]),
    edit: (text) => `${text}\n\nIndex definitions:\n  i7 = 1 - rank;\n`,
  },
  {
    fix: 'before 2026 dumps print the root\'s device id; pass { roots: "positions" }',
    refused: container([
      `Communication 3 (type=Broadcast, team=(1 0), root=2, input=${a}, output=${b}, backend=NCCL)`,
      "Wait Communication 3",
    ]),
    edit: (text) => text.replace("root=2", "root=1"),
    options: { roots: "positions" },
  },
  {
    fix: "name the tensor before the = once more",
    refused: container([
      `${b} = ALLOCATE(buffer=${a}, mem_type=global, size=6, zero_init=false, resets_to_zero=false)`,
    ]),
    edit: (text) => text.replace(`buffer=${a}`, `buffer=${b}`),
  },
  {
    fix: "number the program's tensors, streams and host units from 0",
    refused: dumpText("e1-single-set.hir").replaceAll("T1_", "T99999_"),
    edit: (text) => text.replaceAll("T99999_", "T1_"),
  },
  {
    fix: 'correct the number of the axis; if the tensor\'s axes were split, write its domains under "TransformPrinter :"',
    refused: dumpText("e1-single-set.hir").replace("axis = iS0{i0}", "axis = iS9{i0}"),
    edit: (text) => text.replace("axis = iS9{i0}", "axis = iS0{i0}"),
  },
  restored("e1-single-set.hir", "T0_g_float", "T0_g___e8m0", "convert the tensor to one of these dtypes"),
  restored(
    "e1-single-set.hir",
    "iS0{i0}",
    "iS0{2 : 6 : 4}",
    "write the op that makes such an axis with ops of docs/ops.md",
  ),
  restored(
    "e1-single-set.hir",
    "( StreamIdx % numberOfStreams )",
    "( gcd(StreamIdx, 4) )",
    "write the value with the operators that Braid has",
  ),
  restored(unit, "op = add", "op = bitwise_or", "reduce with one of these"),
  {
    fix: "write the program with these operators",
    refused: container([b, `   = ${a}`, `   % ${a};`]),
    edit: (text) => text.replace("% T0", "* T0"),
  },
  {
    fix: "give names to parts of the expression in the index definitions",
    refused: container([
      "T2_l_float[iS4{3}] (DeviceMesh{0 1})",
      `   = HirAliasSelect( ${a}, axis = iS0{2}, index = ${"( ".repeat(80)}rank )`,
    ]),
    edit: (text) => `${text.replace(/(?:\( ){80}rank/u, "i7")}\n\nIndex definitions:\n  i7 = rank * 1;\n`,
  },
  {
    fix: "write in place with one tensor as both input and output",
    refused: dumpText("e1-single-set.hir").replace(/\} \/\/ %HostIrContainer/u, "\nAliases:{\nT2 -> T0\n}\n$&"),
    edit: (text) => text.replace(/\nAliases:\{[^}]*\}\n/u, ""),
  },
  {
    fix: "print the tensor as nvFuser does, inside the loop whose index it takes",
    refused: container([
      "FOR i5 from 0 to 2:",
      `  T2_l_float[iS4{1}, iS5{3}] (DeviceMesh{0 1}) = ShardByStream(${a}, stream_index=i5)`,
    ]),
    edit: (text) => text.replace("[iS4{1}, iS5{3}]", "[istreamIdx8{2}, iS9{1}, iS7{3}]"),
  },
  restored(unit, /\nHostUnit0: [^]*\/\/ %kernel\n/u, "", "pass the whole container, up to its last line"),
  restored(
    unit,
    /T9_g___bfloat\[iS18\{i0\}, rS19\{i2\}\]/gu,
    "T9_g___bfloat[iS18{i0}]",
    "print the output with its reduced axes, as nvFuser does",
  ),
  {
    fix: "write 32 after the EndCoalescing that this Wait is for",
    refused: dumpText("written/unnumbered-coalescing.hir").replace(
      "      EndCoalescing\n",
      "      EndCoalescing\n      StartCoalescing\n      EndCoalescing\n",
    ),
    edit: (text) => text.replace("      EndCoalescing\n", "      EndCoalescing 32\n"),
  },
  restored(
    "e1-single-set.hir",
    "= Set( T2_l_float[iS4{i2}]",
    "= Set( T2_l_float[iS4{i0}]",
    "give every tensor a unique number; a dump prints a tensor in the same way everywhere",
  ),
  restored("e1-single-set.hir", "[iS0{i0}, iS1{i2}]", "[iS0{i0}, iS0{i2}]", "give each axis a new number"),
  {
    fix: "give the axes of each tensor new numbers, as nvFuser does",
    refused: dumpText("e1-single-set.hir").replaceAll("iS4{i2}", "iS3{i2}"),
    edit: (text) => text.replaceAll("T2_l_float[iS3{i2}]", "T2_l_float[iS7{i2}]"),
  },
  restored(
    "e3-allgather-linear-p2p-cuda.hir",
    "i82 = rank + streamIdx;",
    "i82 = rank + i84;",
    "correct the index definitions",
  ),
  {
    fix: "number the host units, or remove the second body",
    refused: dumpText(unit).replace(/\nHostUnit0: [^]*\/\/ %kernel\n/u, (body) => body + body),
    edit: () => dumpText(unit),
  },
  restored("e2-allreduce.hir", /DeviceMesh\{0 1 2/gu, "DeviceMesh{0 1 1", "remove the second 1"),
  {
    fix: "correct the flags",
    refused: container(
      ["T2_g_float[]", "   = squeeze( T3_g_float[iS6{1}], flags = {true, false} )"],
      "(T3_g_float[iS6{1}]) -> ()",
    ),
    edit: (text) => text.replace("{true, false}", "{true}"),
  },
  {
    fix: "correct the extents",
    refused: container(
      ["T2_g_float[iS4{1}, bS5{4}]", "   = expand( T3_g_float[iS6{1}, bS7{1}], {1, 5} )"],
      "(T3_g_float[iS6{1}, bS7{1}]) -> ()",
    ),
    edit: (text) => text.replace("{1, 5}", "{1, 4}"),
  },
];

/** A dump of the fixtures with a mistake, which the advice takes back. */
function restored(file: string, right: string | RegExp, wrong: string, fix: string): DumpAdvice {
  const text = dumpText(file);
  return { fix, refused: text.replace(right, wrong), edit: () => text };
}
