/**
 * The binding tables are well-formed, and agree with CUDA's and NCCL's headers if these are installed. Structs are read
 * back by C++ that includes the driver's header.
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { writeOperation, writePlaneCopy } from "../../../src/backends/cuda/bind/bind-op.ts";
import * as cublasLt from "../../../src/backends/cuda/bindings/cublaslt-api.ts";
import * as cudnn from "../../../src/backends/cuda/bindings/cudnn-api.ts";
import * as driver from "../../../src/backends/cuda/bindings/driver-api.ts";
import { libraryFolders } from "../../../src/backends/cuda/bindings/native-library.ts";
import * as nccl from "../../../src/backends/cuda/bindings/nccl-api.ts";
import * as nvrtc from "../../../src/backends/cuda/bindings/nvrtc-api.ts";
import { emulationObstacle } from "./emulate/compiler.ts";

interface Table {
  readonly name: string;
  readonly prototypes: Readonly<Record<string, string>>;
  readonly constants: Readonly<Record<string, unknown>>;
  /** Headers that declare the functions and the constants. */
  readonly headers: readonly string[];
}

const tables: readonly Table[] = [
  { name: "driver", prototypes: driver.driverPrototypes, constants: driver, headers: ["cuda.h"] },
  { name: "NVRTC", prototypes: nvrtc.nvrtcPrototypes, constants: nvrtc, headers: ["nvrtc.h"] },
  {
    name: "cuBLASLt",
    prototypes: cublasLt.cublasLtPrototypes,
    constants: cublasLt,
    headers: ["cublasLt.h", "cublas_api.h"],
  },
  {
    name: "cuDNN",
    prototypes: cudnn.cudnnPrototypes,
    constants: {
      ...cudnn.descriptorTypes,
      ...cudnn.attributeNames,
      ...cudnn.attributeTypes,
      ...cudnn.dataTypes,
      ...cudnn.pointwiseModes,
      ...cudnn.reductionOperators,
      ...cudnn.heuristicModes,
    },
    headers: ["cudnn_graph.h"],
  },
  { name: "NCCL", prototypes: nccl.ncclPrototypes, constants: nccl, headers: ["nccl.h"] },
];

function headerFile(name: string): string | null {
  const folders = libraryFolders().flatMap((folder) => [`${folder}/../include`, `${folder}/../../../include`]);
  return folders.map((folder) => `${folder}/${name}`).find((file) => existsSync(file)) ?? null;
}

function headerText(name: string): string | null {
  const file = headerFile(name);
  return file === null ? null : readFileSync(file, "utf8").replaceAll(/\/\*[\s\S]*?\*\//g, "");
}

/** How wide a C parameter is when it is passed: enough to tell a wrong table. */
function widthOf(parameter: string): string {
  if (/CUipcMemHandle|ncclUniqueId/.test(parameter) && !parameter.includes("*")) return "struct";
  if (/\*|\[\]/.test(parameter)) return "64";
  if (
    /\b(size_t|uint64_t|int64_t|cuuint64_t|unsigned long long|CUdeviceptr|CUstream|CUevent|CUcontext|CUmodule|CUfunction|CUgraph|CUgraphExec|nvrtcProgram|cublasLtHandle_t|cublasLtMatmulDesc_t|cublasLtMatrixLayout_t|cublasLtMatmulPreference_t|cudnnHandle_t|cudnnBackendDescriptor_t|ncclComm_t|cudaStream_t)\b/.test(
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

/** The enumerators of a header that has no values for them: they count from 0, or from the one before. */
function enumerators(text: string): ReadonlyMap<string, number> {
  const values = new Map<string, number>();
  for (const [, body = ""] of text.matchAll(/\benum\s*\w*\s*\{([^}]*)\}/g)) {
    let next = 0;
    for (const each of body.split(",")) {
      const [, name, value] = /^\s*(\w+)(?:\s+\w+)?\s*(?:=\s*(\w+))?/.exec(each) ?? [];
      if (name === undefined) continue;
      next = value === undefined ? next : Number(value);
      values.set(name, next);
      next++;
    }
  }
  return values;
}

describe.each(tables)("$name", ({ name, prototypes, constants, headers }) => {
  it("names the function of each row", () => {
    for (const [key, prototype] of Object.entries(prototypes)) {
      expect(prototype).toMatch(new RegExp(`^(int|void|size_t|const char \\*) ?${key}\\(.*\\)$`));
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
    const counted = enumerators(text);
    for (const [key, value] of Object.entries(constants)) {
      // Of structs, whose sizes no header says.
      if (typeof value !== "number" || key.endsWith("_SIZE")) continue;
      const declared = new RegExp(`\\b${key}\\s*=?\\s*(0x[0-9a-fA-F]+|\\d+)`).exec(text)?.[1];
      expect(Number(declared ?? counted.get(key)), key).toBe(value);
    }
  });
});

/** Bytes as Braid writes them, and what the driver has to read in them. */
interface WrittenStruct {
  readonly type: string;
  readonly bytes: number;
  readonly write: (view: DataView) => void;
  readonly reads: Readonly<Record<string, number | string>>;
}

const [near, far] = [0x7f00_1234_5678, 0x7f55_0000_0010];

const writtenStructs: readonly WrittenStruct[] = [
  {
    type: "CUstreamBatchMemOpParams",
    bytes: driver.CU_STREAM_BATCH_MEM_OP_SIZE,
    write: (view) => writeOperation(view, 0, { kind: "wait", address: near, value: 1 }),
    reads: {
      operation: "CU_STREAM_MEM_OP_WAIT_VALUE_32",
      "waitValue.address": near,
      "waitValue.value": 1,
      "waitValue.flags": "CU_STREAM_WAIT_VALUE_EQ",
    },
  },
  {
    type: "CUstreamBatchMemOpParams",
    bytes: driver.CU_STREAM_BATCH_MEM_OP_SIZE,
    write: (view) => writeOperation(view, 0, { kind: "write", address: far, value: 7 }),
    reads: {
      operation: "CU_STREAM_MEM_OP_WRITE_VALUE_32",
      "writeValue.address": far,
      "writeValue.value": 7,
      "writeValue.flags": "CU_STREAM_WRITE_VALUE_DEFAULT",
    },
  },
  {
    type: "CUDA_MEMCPY2D",
    bytes: driver.CUDA_MEMCPY2D_SIZE,
    write: (view) =>
      writePlaneCopy(view, {
        source: near,
        sourcePitch: 512,
        destination: far,
        destinationPitch: 4096,
        width: 96,
        height: 3,
      }),
    reads: {
      srcXInBytes: 0,
      srcY: 0,
      srcMemoryType: "CU_MEMORYTYPE_DEVICE",
      srcDevice: near,
      srcPitch: 512,
      dstXInBytes: 0,
      dstY: 0,
      dstMemoryType: "CU_MEMORYTYPE_DEVICE",
      dstDevice: far,
      dstPitch: 4096,
      WidthInBytes: 96,
      Height: 3,
    },
  },
];

describe("structs of the driver", () => {
  const header = headerFile("cuda.h");
  const obstacle = header === null ? "cuda.h is not installed" : emulationObstacle();
  if (obstacle !== null) console.log(`structs are not read back: ${obstacle}`);

  it.skipIf(obstacle !== null)("have the size and the fields that the header says", () => {
    const folder = mkdtempSync(path.join(tmpdir(), "braid-structs-"));
    try {
      writeFileSync(path.join(folder, "read.cpp"), readBack(writtenStructs));
      const flags = ["-w", "-I", path.dirname(header ?? ""), "-o", "read", "read.cpp"];
      execFileSync("g++", flags, { cwd: folder, stdio: "pipe" });
      expect(execFileSync(path.join(folder, "read"), { encoding: "utf8" })).toBe("");
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

/** A program that prints every field which does not hold what it should. */
function readBack(structs: readonly WrittenStruct[]): string {
  const blocks = structs.map(({ type, bytes, write, reads }) => {
    const view = new DataView(new ArrayBuffer(bytes));
    write(view);
    const written = Array.from(new Uint8Array(view.buffer)).join(", ");
    const checks = Object.entries(reads).map(
      ([field, value]) => `    if ((unsigned long long)s.${field} != ${value}) std::puts("${type}.${field}");`,
    );
    return [
      `  static_assert(sizeof(${type}) == ${bytes}, "its size");`,
      "  {",
      `    const unsigned char written[] = { ${written} };`,
      `    ${type} s;`,
      "    std::memcpy(&s, written, sizeof s);",
      ...checks,
      "  }",
    ].join("\n");
  });
  return `#include <cstdio>\n#include <cstring>\n#include <cuda.h>\nint main() {\n${blocks.join("\n")}\n}\n`;
}
