/**
 * Faults that a transformer's author, or a compiler, may make are found by --check, in float and in bfloat16. A fault is
 * an edit of an example's text. Its results are those of the faulty program, one rounding per op.
 */
import * as braid from "@braid-compiler/braid";
import { expect, it } from "vitest";
import { loadProgram } from "../../src/cli/program/load-program.ts";
import { checkOutputs } from "../../src/cli/run/outputs.ts";
import type { DType } from "../../src/numerics/dtype.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { blockData, drawnInputs, editedBlock } from "./blocks.ts";
import { ownFolder } from "../cli/own-folder.ts";

const folder = ownFolder();

interface Fault {
  readonly name: string;
  readonly file: "gpt-block" | "llama-block";
  readonly from: string;
  readonly to: string;
}

/** `braid` is the package in the texts. */
const faults: readonly Fault[] = [
  { name: "q and k are swapped", file: "gpt-block", from: "const [q, k, v]", to: "const [k, q, v]" },
  {
    name: "the mask is off by one",
    file: "gpt-block",
    from: 'sdpa(q, k, v, { causal: "topLeft" })',
    to: `sdpa(q, braid.pad(k, [[0, 0], [0, 0], [0, 1], [0, 0]]), braid.pad(v, [[0, 0], [0, 0], [0, 1], [0, 0]]), {
      causal: "bottomRight" })`,
  },
  {
    name: "scores are not divided by sqrt(d)",
    file: "llama-block",
    from: '{ causal: "topLeft" }',
    to: '{ causal: "topLeft", scale: 1 }',
  },
  { name: "a gradient is not divided by the devices", file: "gpt-block", from: "[dz],", to: "[braid.mul(dz, 2)]," },
  { name: "only q is rotated", file: "llama-block", from: "rope(k, c, s)", to: "k" },
  { name: "the gate has no silu", file: "llama-block", from: "swiglu(", to: "braid.mul(" },
  { name: "the second norm reads x", file: "llama-block", from: "rmsNorm(r, norm2)", to: "rmsNorm(x, norm2)" },
  {
    name: "dropout has a seed per rank",
    file: "gpt-block",
    from: "dropout(linear(hidden, wDown, bDown), DROPOUT, seed)",
    to: `braid.cat(braid.chunk(linear(hidden, wDown, bDown), 2, 1).map((part, rank) =>
      dropout(part, DROPOUT, add(seed, rank), { offset: 1 })), 1)`,
  },
];

async function build(name: string, text: string, DTYPE: DType): Promise<braid.FusionData> {
  const { program } = await loadProgram(folder.write(`${name}.ts`, text), { "@braid-compiler/braid": braid });
  return blockData(program, 2, { S: 1, B: 1, L: 8, DTYPE });
}

it.each(faults.flatMap((fault) => (["float", "bfloat16"] as const).map((dtype) => ({ ...fault, dtype }))))(
  "$name, in $dtype",
  async ({ file, from, to, dtype }) => {
    const right = await build("right", editedBlock(file, from, from), dtype);
    const wrong = await build(
      "wrong",
      `import * as braid from "@braid-compiler/braid";\n${editedBlock(file, from, to)}`,
      dtype,
    );
    const inputs = drawnInputs(right);
    const failures = [right, wrong].map((program) => {
      const outputs = evaluateFusion(program, inputs).outputs.map((tensor) => [{ tensor, ranks: [0] }]);
      return checkOutputs(right, inputs, new Map(), outputs, "braid").map(({ failure }) => failure?.code ?? null);
    });
    expect(failures[0]?.filter((code) => code !== null)).toEqual([]);
    expect(failures[1]).toContain("check-failed");
  },
);
