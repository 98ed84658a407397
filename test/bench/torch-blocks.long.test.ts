/** bench/peers/torch_blocks.py: blocks of examples/transformer beside PyTorch's in float64, where PyTorch is installed. */
import { spawnSync } from "node:child_process";
import path from "node:path";
import process from "node:process";
import { expect, it } from "vitest";

const root = path.resolve(import.meta.dirname, "../..");
const torch = spawnSync("python3", ["-c", "import torch"]).status === 0;

it.skipIf(!torch)("blocks are as exact as PyTorch's, and planted faults are not", () => {
  const script = path.join(root, "bench/peers/torch_blocks.py");
  const braid = `${process.execPath} ${path.join(root, "dist/cli/main.js")}`;
  const { status, stdout, stderr } = spawnSync("python3", [script, "--braid", braid], { encoding: "utf8" });
  expect(status, stderr).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ most: 2, cases: Array.from({ length: 4 }, () => ({ ok: true })) });
});
