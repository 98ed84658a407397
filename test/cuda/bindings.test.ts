/** The binding tables: well-formed by themselves, and as the headers declare the functions where CUDA's and NCCL's headers are installed. */
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import * as cublasLt from "../../src/backends/cuda/bindings/cublaslt-api.ts";
import * as driver from "../../src/backends/cuda/bindings/driver-api.ts";
import { libraryFolders } from "../../src/backends/cuda/bindings/library-places.ts";
import * as nccl from "../../src/backends/cuda/bindings/nccl-api.ts";
import * as nvrtc from "../../src/backends/cuda/bindings/nvrtc-api.ts";

interface Table {
  readonly name: string;
  readonly prototypes: Readonly<Record<string, string>>;
  readonly constants: Readonly<Record<string, unknown>>;
  /** Headers that declare the functions; the first hold the constants too. */
  readonly headers: readonly string[];
}

const tables: readonly Table[] = [
  { name: "driver", prototypes: driver.driverPrototypes, constants: driver, headers: ["cuda.h"] },
  { name: "NVRTC", prototypes: nvrtc.nvrtcPrototypes, constants: nvrtc, headers: ["nvrtc.h"] },
  { name: "cuBLASLt", prototypes: cublasLt.cublasLtPrototypes, constants: cublasLt, headers: ["cublasLt.h"] },
  { name: "NCCL", prototypes: nccl.ncclPrototypes, constants: nccl, headers: ["nccl.h"] },
];

function headerText(name: string): string | null {
  const folders = libraryFolders().flatMap((folder) => [`${folder}/../include`, `${folder}/../../../include`]);
  const found = folders.map((folder) => `${folder}/${name}`).find((file) => existsSync(file));
  return found === undefined ? null : readFileSync(found, "utf8").replaceAll(/\/\*[\s\S]*?\*\//g, "");
}

/** How wide a C parameter is when it is passed: enough to tell a wrong table. */
function widthOf(parameter: string): string {
  if (/CUipcMemHandle|ncclUniqueId/.test(parameter) && !parameter.includes("*")) return "struct";
  if (/\*|\[\]/.test(parameter)) return "64";
  if (
    /\b(size_t|uint64_t|int64_t|cuuint64_t|unsigned long long|CUdeviceptr|CUstream|CUevent|CUcontext|CUmodule|CUfunction|CUgraph|CUgraphExec|nvrtcProgram|cublasLtHandle_t|cublasLtMatmulDesc_t|cublasLtMatrixLayout_t|cublasLtMatmulPreference_t|ncclComm_t|cudaStream_t)\b/.test(
      parameter,
    )
  ) {
    return "64";
  }
  return /\b(uint8_t|unsigned char)\b/.test(parameter) ? "8" : "32";
}

function parametersOf(list: string): readonly string[] {
  return list
    .split(",")
    .map((parameter) => parameter.trim())
    .filter((parameter) => parameter !== "" && parameter !== "void");
}

describe.each(tables)("$name", ({ name, prototypes, constants, headers }) => {
  it("names the function of each row", () => {
    for (const [key, prototype] of Object.entries(prototypes)) {
      expect(prototype).toMatch(new RegExp(`^(int|size_t|const char \\*) ?${key}\\(.*\\)$`));
    }
  });

  const text = headers.map(headerText).join("\n");
  const installed = headers.every((header) => headerText(header) !== null);
  if (!installed) console.log(`headers of ${name} are not installed: their prototypes are not compared`);

  it.skipIf(!installed)("has the parameters that the header declares", () => {
    for (const [key, prototype] of Object.entries(prototypes)) {
      // cuda.h declares most functions by a name that a macro turns into the exported one.
      const macro = new RegExp(`#define\\s+(\\w+)\\s+(?:\\w+\\()?${key}\\b`).exec(text)?.[1];
      const declared = [key, ...(macro === undefined ? [] : [macro])].flatMap((each) => {
        const found = new RegExp(`\\b${each}\\s*\\(([^;{]*?)\\)\\s*(?:;|\\{)`, "g").exec(text);
        return found === null ? [] : [found[1] ?? ""];
      })[0];
      expect(declared, key).toBeDefined();
      const own = prototype.slice(prototype.indexOf("(") + 1, prototype.lastIndexOf(")"));
      expect(parametersOf(own).map(widthOf), `${key}(${declared ?? ""})`).toEqual(
        parametersOf(declared ?? "").map(widthOf),
      );
    }
  });

  it.skipIf(!installed)("has the header's values of constants", () => {
    for (const [key, value] of Object.entries(constants)) {
      if (typeof value !== "number" || /_SIZE$|_v\d/.test(key)) continue;
      const declared = new RegExp(`\\b${key}\\s*=?\\s*(0x[0-9a-fA-F]+|\\d+)`).exec(text)?.[1];
      if (declared !== undefined) expect(Number(declared), key).toBe(value);
    }
  });
});
