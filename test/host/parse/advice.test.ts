/** The advice of diagnostics about dumps, typed: each text is refused with it, and read after the edit that it asks for. */
import { expect, it } from "vitest";
import { parse, type ParseOptions } from "braid";
import { dumpText } from "./dump-cases.ts";

interface Advice {
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
const line = /^ {2}\S.*$/mu;

const advice: readonly Advice[] = [
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
];

it.each(advice)("$fix", ({ fix, refused, edit, options = {} }) => {
  expect(() => parse(refused)).toThrow(`fix: ${fix}`);
  expect(() => parse(edit(refused), options)).not.toThrow();
});
