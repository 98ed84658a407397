/**
 * Assembles the matrix kernels and writes them into src/kernels/gemm/gemm-wasm.ts. Run `npm run build:wasm` after a
 * change of gemm-wat.ts. The result is checked in, so that neither a build nor a browser needs an assembler. A test
 * compares the two.
 */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import wabt from "wabt";
import { gemmModule, tileRows } from "./gemm-wat.ts";

export const generatedFile = fileURLToPath(new URL("../src/kernels/gemm/gemm-wasm.ts", import.meta.url));

/** The text of the generated file. */
export async function generate(): Promise<string> {
  const assembler = await wabt();
  const assemble = (memory: "shared" | "unshared"): string => {
    const module = assembler.parseWat(`gemm-${memory}.wat`, gemmModule(memory), { simd: true, threads: true });
    const { buffer } = module.toBinary({ write_debug_names: false });
    module.destroy();
    return Buffer.from(buffer).toString("base64");
  };
  return `/** Generated from scripts/gemm-wat.ts by \`npm run build:wasm\`. Do not edit. */

/** Rows of a tile. */
export const tileRows = ${tileRows};

/** The module in base64, by the kind of memory that it imports. */
export const gemmWasm = {
  // prettier-ignore
  shared: "${assemble("shared")}",
  // prettier-ignore
  unshared: "${assemble("unshared")}",
} as const;
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(generatedFile, await generate());
