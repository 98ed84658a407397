/**
 * Attention by cuDNN's graph API, on a library that checks descriptors and runs the operations of a graph one by one:
 * the graph means attention, its attributes have the types of the header, plans are built once and given back.
 */
import { readFileSync, rmSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { emulationObstacle } from "./emulate/compiler.ts";
import { buildFakes, type Fakes } from "./fake/build-fakes.ts";
import { runRanks } from "./fake/run-ranks.ts";

const obstacle = process.platform === "linux" ? emulationObstacle() : "fake GPUs are shared objects for Linux";
if (obstacle !== null) console.log(`test/backends/cuda/cudnn is skipped: ${obstacle}`);

let fakes: Fakes;
beforeEach(() => {
  if (obstacle === null) fakes = buildFakes(1);
}, 60_000);
afterEach(() => {
  if (obstacle === null) rmSync(fakes.folder, { recursive: true });
});

function calls(): readonly string[] {
  return readFileSync(path.join(fakes.folder, "calls"), "utf8").split("\n");
}

describe.skipIf(obstacle !== null)("attention by cuDNN", () => {
  it("has the oracle's results, eager and in graphs, with the same bits in every run", async () => {
    const { statuses, printed } = await runRanks(fakes, 1, "cudnn-rank.ts");
    const lines = printed.trim().split("\n");
    expect(lines.filter((line) => !line.endsWith(": ok"))).toEqual([]);
    expect(lines).toHaveLength(21);
    expect(statuses).toEqual([0]);
    const made = calls();
    // 20 programs have a plan forward and one backward, the last has one for two attentions of a layout. The first run
    // is issued eagerly, and the second is captured.
    expect(made.filter((call) => call === "cudnn: a plan")).toHaveLength(41);
    expect(made.filter((call) => call === "cudnnBackendExecute")).toHaveLength(84);
    // Nothing is destroyed in use, or twice, or left.
    expect(made.filter((call) => call.startsWith("cudnn: ") && call !== "cudnn: a plan")).toEqual([]);
  }, 120_000);

  it("is refused by name where cuDNN does not take it, and runs as ops with a note", async () => {
    const { printed } = await runRanks(fakes, 1, "cudnn-rank.ts", "12");
    expect(printed).toContain("error[kernel-opaque]: cuDNN does not take this sdpa");
    expect(printed).toContain("found: heads of 12 elements of q and k");
    expect(printed).toContain("note: attention runs as matmuls and a softmax: heads of 12 elements of q and k");
    expect(printed).toContain("note: the gradient of attention runs as matmuls and a softmax: heads of 12 elements");
    expect(printed.match(/error/g)).toHaveLength(1);
  }, 60_000);

  it("tells what cuDNN refused", async () => {
    const refusing = { ...fakes, env: { ...fakes.env, FAKE_CUDNN_REFUSES: "1" } };
    const { printed } = await runRanks(refusing, 1, "cudnn-rank.ts", "8");
    expect(printed).toContain("error[kernel-opaque]: cuDNN has no kernel for this sdpa");
    expect(printed).toContain(
      "CUDNN_STATUS_NOT_SUPPORTED (3000) from cudnnBackendFinalize(the plan of engine 1): this engine takes no graph",
    );
    expect(printed).toContain("causal no; operands half [4, 8] strides 8, 1");
  }, 60_000);

  it("has gradients of large heads on Hopper alone", async () => {
    const of = async (major: string): Promise<string> => {
      const gpu = { ...fakes, env: { ...fakes.env, FAKE_CUDA_MAJOR: major } };
      return (await runRanks(gpu, 1, "cudnn-rank.ts", "136")).printed;
    };
    expect(await of("8")).toContain(
      "note: attention runs as matmuls and a softmax: gradients of heads of 136 elements on a GPU of compute capability 8",
    );
    expect(await of("9")).not.toContain("note:");
  }, 60_000);

  it("needs a recent cuDNN", async () => {
    const old = { ...fakes, env: { ...fakes.env, FAKE_CUDNN_VERSION: "91002" } };
    const { printed } = await runRanks(old, 1, "cudnn-rank.ts", "8");
    expect(printed).toContain("note: attention runs as matmuls and a softmax: cuDNN 9.10.2 is older than 9.15.1");
    expect(printed.match(/note:/g)).toHaveLength(1);
  }, 60_000);
});
