/** PyTorch's block beside the oracle's, from the same numbers, where PyTorch is installed: bench/peers/block_problem.py. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, it } from "vitest";
import { unchunked, wholeBlock } from "../../bench/compare/block/block-fusion.ts";
import { createBlockMatrices } from "../../bench/compare/block/block-matrices.ts";
import { type BlockProblem, blockCuts, blockPasses } from "../../bench/compare/block/block-problem.ts";
import { blockSetup } from "../../bench/compare/block/block-reference.ts";
import { relativeError } from "../../bench/compare/block/sampled-block.ts";
import { sizesFromMeshes, shapeOf } from "../../src/ir/sizes.ts";
import { emptyTensor, tensorBytes, elementsOf } from "../../src/numerics/tensor/host-tensor.ts";
import { evaluateFusion } from "../../src/oracle/evaluate.ts";
import { at } from "../../src/support/invariant.ts";

const hasTorch = spawnSync("python3", ["-c", "import torch"]).status === 0;
if (!hasTorch) console.log("test/bench/block-peer is skipped: python3 has no torch");

interface Answer {
  readonly values: readonly { readonly values: readonly number[]; readonly error: number }[];
  readonly checks: Readonly<
    Record<string, { readonly error?: number; readonly bound?: number; readonly unchecked?: string }>
  >;
}

const matrices = createBlockMatrices(5);

function expectedOf(problem: BlockProblem) {
  const block = wholeBlock(problem, unchunked);
  const fusion = block.fusion.data();
  const sizes = sizesFromMeshes(fusion.tensors);
  const inputs = fusion.inputs.map((id, i) => {
    const { dtype } = at(fusion.tensors, id);
    const whole = emptyTensor(dtype, shapeOf(at(fusion.tensors, id), sizes));
    tensorBytes(whole).set(matrices.whole(at(block.inputs, i), dtype, whole.shape));
    return whole;
  });
  const { outputs } = evaluateFusion(fusion, inputs, sizes);
  return block.outputs.map((output, i) => {
    const { dtype, data } = at(outputs, i);
    const elements = elementsOf(dtype, data);
    return { output, values: Array.from({ length: elements.length }, (_, place) => Number(elements.get(place))) };
  });
}

/** For each rank, an answer to each request. */
function ask(requests: readonly object[]): readonly (readonly Answer[])[] {
  const folder = mkdtempSync(path.join(tmpdir(), "braid-block-"));
  try {
    const file = path.join(folder, "requests.json");
    writeFileSync(file, JSON.stringify(requests));
    const script = path.join(import.meta.dirname, "block_peer.py");
    const { status, stderr } = spawnSync("python3", [script, file, folder], { encoding: "utf8", timeout: 60_000 });
    expect(status, stderr).toBe(0);
    return [0, 1].map((rank) => JSON.parse(readFileSync(path.join(folder, `answer${rank}.json`), "utf8")) as Answer[]);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const problems = [
  ...blockCuts.flatMap((cut) =>
    blockPasses.map((pass) => ({ model: "small-llama", cut, pass, dtype: "float" }) as const),
  ),
  { model: "small-gpt", cut: "tp-sp", pass: "forward+backward", dtype: "float" } as const,
  { model: "small-gpt", cut: "tp", pass: "forward+backward", dtype: "bfloat16" } as const,
].map((given): BlockProblem => ({ primitive: "block", devices: 2, ...given }));

it.skipIf(!hasTorch)(
  "PyTorch's block is Braid's",
  () => {
    const expected = problems.map(expectedOf);
    const ranks = ask(
      problems.map((problem, i) => ({
        setup: blockSetup(problem, matrices),
        values: at(expected, i).map(({ output, values }) => ({ output, indices: values.map((_, place) => place) })),
      })),
    );
    for (const answers of ranks) {
      for (const [i, problem] of problems.entries()) {
        const { values, checks } = at(answers, i);
        const most = problem.dtype === "float" ? 2e-6 : 0.02;
        for (const [place, { output, values: wanted }] of at(expected, i).entries()) {
          const what = `${problem.model} ${problem.cut} ${problem.pass}: ${output}`;
          expect(relativeError(at(values, place).values, wanted), what).toBeLessThan(most);
          expect(at(values, place).error, what).toBeLessThan(most);
        }
        const { error = NaN, bound = NaN } = checks["nccl"] ?? {};
        expect(error).toBeLessThan(bound);
        expect(checks["compute-only"]).toEqual({ unchecked: "it does not communicate" });
      }
    }
  },
  60_000,
);
