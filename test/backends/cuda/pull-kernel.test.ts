/**
 * The kernel of small copies over links: its source against a golden file, and its results, run on the CPU and compiled
 * for GPUs.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { pullKernel } from "../../../src/backends/cuda/kernels/pull-kernel.ts";
import { emulationObstacle } from "./emulate/compiler.ts";

const obstacle = emulationObstacle();
if (obstacle !== null) console.log(`test/backends/cuda/pull-kernel is skipped in part: ${obstacle}`);

it("has the source of its golden file: few blocks, wide loads, the rest by bytes", async () => {
  const { text, grid, block } = pullKernel(4_194_309, 256);
  await expect(`// grid ${grid.join(" x ")}, block ${block.join(" x ")}\n${text}`).toMatchFileSnapshot(
    path.join(import.meta.dirname, "golden", "pull.cu"),
  );
});

it("has as many blocks as it takes and no more than 16", () => {
  expect([1, 65_536, 65_537, 2 ** 40].map((bytes) => pullKernel(bytes, 16).grid[0])).toEqual([1, 1, 1, 16]);
  expect(pullKernel(3 * 65_536, 16).grid[0]).toBe(3);
  // A counter of 32 bits would wrap.
  expect(pullKernel(2 ** 40, 16).text).toContain("for (unsigned long long base");
});

/** Copies that many bytes between addresses of that alignment; each is followed by bytes that must stay. */
const cases = [
  { bytes: 1, alignment: 256 },
  { bytes: 15, alignment: 16 },
  { bytes: 16 * 512 * 8, alignment: 16 },
  { bytes: 16 * 512 * 8 * 3 + 16 * 700 + 5, alignment: 16 },
  { bytes: 16 * 512 * 8 * 17 + 3, alignment: 16 },
  { bytes: 40_007, alignment: 8 },
  { bytes: 40_007, alignment: 4 },
  { bytes: 40_007, alignment: 2 },
  { bytes: 40_007, alignment: 1 },
] as const;

describe.skipIf(obstacle !== null)("on the CPU", () => {
  it("copies every byte and no other, for every width", () => {
    const calls = cases.map(({ bytes, alignment }, i) => {
      const { text, grid, block } = pullKernel(bytes, alignment);
      const start = 256 + alignment;
      return {
        kernel: `namespace case${i} {\n${text.replace('extern "C" ', "")}\n}`,
        call: `{
  std::vector<unsigned char> from(${start + bytes + 64} + 256), to(from.size(), 0xa5);
  unsigned char *in = (unsigned char *)(((uintptr_t)from.data() + 255) / 256 * 256) + ${alignment % 256};
  unsigned char *out = (unsigned char *)(((uintptr_t)to.data() + 255) / 256 * 256) + ${alignment % 256};
  for (size_t i = 0; i < ${bytes}; i++) in[i] = (unsigned char)(i * 7 + i / 251);
  for (unsigned b = 0; b < ${grid[0]}u; b++) for (unsigned t = 0; t < ${block[0]}u; t++) {
    blockIdx.x = b; threadIdx.x = t;
    case${i}::braid_kernel((decltype(case${i}::pointer()))in, (decltype(case${i}::pointer()))out);
  }
  for (size_t i = 0; i < ${bytes}; i++) if (out[i] != in[i]) { std::printf("case ${i}: byte %zu\\n", i); return 1; }
  for (size_t i = 0; i < 64; i++) if (out[${bytes} + i] != 0xa5) { std::printf("case ${i}: beyond by %zu\\n", i); return 1; }
}`,
        pointer: `namespace case${i} { ${/\(const ([\w ]+) \*input0/.exec(text)?.[1] ?? ""} *pointer(); }`,
      };
    });
    const folder = mkdtempSync(path.join(tmpdir(), "braid-pull-"));
    try {
      const [source, program] = [path.join(folder, "pull.cpp"), path.join(folder, "pull")];
      const body = calls.map(({ kernel, pointer }) => `${kernel}\n${pointer}`).join("\n");
      const main = `int main() {\n${calls.map(({ call }) => call).join("\n")}\nreturn 0;\n}\n`;
      writeFileSync(source, `#include "cuda-on-cpu.hpp"\n${body}\n${main}`);
      const flags = ["-std=c++17", "-O1", "-w", "-I", path.join(import.meta.dirname, "emulate")];
      execFileSync("g++", [...flags, source, "-o", program], { stdio: "pipe" });
      expect(execFileSync(program, { encoding: "utf8", timeout: 60_000 })).toBe("");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
