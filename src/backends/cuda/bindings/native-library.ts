/**
 * Loads a library through koffi and binds a table of C prototypes. Handles and device pointers are plain numbers
 * (`uint64_t`; addresses are below 2^53). Arrays that C reads or writes during a call are typed arrays, and
 * out-parameters are arrays of one element.
 */
import type * as Koffi from "koffi";
import { existsSync, readdirSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";
import { DiagnosticError, fail } from "../../../diagnostics/diagnostic.ts";
import { keysOf } from "../../../support/invariant.ts";

/** A C prototype per function, in koffi's notation. */
export type Prototypes = Readonly<Record<string, string>>;

/** An out-parameter: C writes its first element. */
export type Out = [number];

/** The functions of a table, by their prototypes. */
export type FunctionsOf<T extends Prototypes> = {
  [K in keyof T]: T[K] extends `${infer Result}(${infer List})`
    ? (...values: ParametersOf<List>) => Result extends `const char *${string}` ? string : number
    : never;
};

type ParametersOf<List extends string> = List extends ""
  ? []
  : List extends `${infer First}, ${infer Rest}`
    ? [ParameterOf<First>, ...ParametersOf<Rest>]
    : [ParameterOf<List>];

type ParameterOf<Text extends string> = Text extends ` ${infer Rest}`
  ? ParameterOf<Rest>
  : Text extends `_Out_ ${string}` | `_Inout_ ${string}`
    ? Out
    : Text extends `void *${string}` | `const void *${string}`
      ? Uint8Array
      : Text extends `const char **${string}`
        ? readonly string[]
        : Text extends `const char *${string}`
          ? string
          : Text extends `${keyof typeof byValue} ${string}`
            ? { readonly bytes: Uint8Array }
            : number;

/** Structs that are passed by value. koffi identifies types by name. */
const byValue = { CUipcMemHandle: 64, ncclUniqueId: 128 } as const;

export interface LoadedLibrary<F> {
  /** The name under which the loader found it. */
  readonly file: string;
  readonly functions: F;
}

/**
 * Binds every function of the table. Throws `backend-unavailable` if koffi or the library is missing, with the places
 * that were searched, or with the functions that the library lacks.
 */
export function loadLibrary<T extends Prototypes>(library: CudaLibrary, prototypes: T): LoadedLibrary<FunctionsOf<T>> {
  const koffi = requireKoffi();
  const { title } = cudaLibraries[library];
  const failures: string[] = [];
  for (const file of libraryCandidates(library)) {
    let handle: ReturnType<typeof Koffi.load>;
    try {
      handle = koffi.load(file);
    } catch (error) {
      failures.push(`${file}: ${error instanceof Error ? error.message : String(error)}`);
      continue;
    }
    keepLoaded(koffi, file);
    return { file, functions: bind(koffi, handle, title, file, prototypes) };
  }
  return fail("backend-unavailable", `${title} is not installed on this machine, or cannot be loaded`, {
    place: { kind: "option", text: "--on cuda" },
    found: failures.slice(0, 4).join("; "),
    expected: cudaLibraries[library].files.join(" or "),
    help: "install it, or name its folder in LD_LIBRARY_PATH; `braid doctor` shows what this machine has",
    notes: [`looked in the loader's path and in ${libraryFolders().join(", ")}`],
  });
}

/** The text at a `const char *`; empty for null. */
export function textAt(address: number): string {
  return address === 0 ? "" : requireKoffi().decode.string(BigInt(address));
}

/** The memory at an address that stays allocated, as bytes. */
export function bytesAt(address: number, count: number): ArrayBuffer {
  return requireKoffi().view(address, count);
}

function requireKoffi(): typeof Koffi {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-assignment -- require gives any; an optional package cannot be imported statically
    const koffi: typeof Koffi = createRequire(import.meta.url)("koffi");
    return koffi;
  } catch (error) {
    throw new DiagnosticError([
      {
        code: "backend-unavailable",
        message: "the package koffi, which Braid uses to call native libraries, is not installed",
        place: { kind: "option", text: "--on cuda" },
        found: error instanceof Error ? (error.message.split("\n")[0] ?? "") : String(error),
        expected: "koffi, an optional dependency of Braid",
        help: "npm install koffi",
      },
    ]);
  }
}

/** RTLD_NOW | RTLD_NODELETE of dlfcn.h. */
const neverUnload = 0x1002;

/**
 * koffi unloads a library with the last of its functions. CUDA's libraries hold threads and process state that do not
 * survive that.
 */
function keepLoaded(koffi: typeof Koffi, file: string): void {
  const dlopen: (name: string, flags: number) => number = koffi
    .load(null)
    .func("uint64_t dlopen(const char *name, int flags)");
  dlopen(file, neverUnload);
}

function bind<T extends Prototypes>(
  koffi: typeof Koffi,
  handle: ReturnType<typeof Koffi.load>,
  title: string,
  file: string,
  prototypes: T,
): FunctionsOf<T> {
  for (const name of keysOf(byValue)) {
    if (!isKnown(koffi, name)) koffi.struct(name, { bytes: koffi.array("uint8_t", byValue[name]) });
  }
  const missing: string[] = [];
  const functions: Record<string, unknown> = {};
  for (const [name, prototype] of Object.entries(prototypes)) {
    try {
      functions[name] = handle.func(prototype);
    } catch {
      missing.push(name);
    }
  }
  if (missing.length > 0) {
    fail("backend-unavailable", `this ${title} is too old for Braid`, {
      place: { kind: "file", path: file },
      found: `a library without ${missing.join(", ")}`,
      expected: "CUDA 12 or newer, NCCL 2.18 or newer, cuDNN 9",
      help: "install a newer version, or name its folder in LD_LIBRARY_PATH",
    });
  }
  // oxlint-disable-next-line typescript/consistent-type-assertions -- a table of the FFI: one function per prototype
  return functions as FunctionsOf<T>;
}

function isKnown(koffi: typeof Koffi, name: string): boolean {
  try {
    koffi.type(name);
    return true;
  } catch {
    return false;
  }
}

// Search paths of NVIDIA's libraries: the loader's own path, the toolkit's folders, then the wheels of a Python
// environment, where a machine with PyTorch has them. Nothing is loaded here; `braid doctor` shows the same paths.

/** The libraries. File names are tried in this order, newest first. */
export const cudaLibraries = {
  driver: { title: "CUDA driver", files: ["libcuda.so.1"] },
  nvrtc: { title: "NVRTC", files: ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"] },
  cublasLt: { title: "cuBLASLt", files: ["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"] },
  cudnn: { title: "cuDNN", files: ["libcudnn.so.9", "libcudnn_graph.so.9", "libcudnn.so"] },
  nccl: { title: "NCCL", files: ["libnccl.so.2", "libnccl.so"] },
} as const;

export type CudaLibrary = keyof typeof cudaLibraries;

/**
 * Existing folders in search order, without duplicates. The loader's path is searched before them and is not listed.
 */
export function libraryFolders(): readonly string[] {
  const toolkits = ["CUDA_HOME", "CUDA_PATH"].flatMap((name) => variable(name));
  const installed = ["/usr/local/cuda", ...matching("/usr/local", /^cuda-\d/).toReversed()];
  const roots = [...toolkits, ...installed].flatMap((root) => [`${root}/lib64`, `${root}/targets/x86_64-linux/lib`]);
  const wheels = sitePackages().flatMap((site) => matching(`${site}/nvidia`, /./).map((folder) => `${folder}/lib`));
  const system = ["/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64"];
  const listed = variable("LD_LIBRARY_PATH").flatMap((value) => value.split(path.delimiter));
  return [...new Set([...listed, ...roots, ...wheels, ...system])].filter(
    (folder) => folder !== "" && existsSync(folder),
  );
}

/** Names to ask the loader for, in order: the bare names, then every existing file. */
function libraryCandidates(library: CudaLibrary): readonly string[] {
  const { files } = cudaLibraries[library];
  const found = libraryFolders().flatMap((folder) => files.map((file) => path.join(folder, file)).filter(existsSync));
  return [...files, ...found];
}

/** site-packages of the active environment and of the python3 on the PATH. */
function sitePackages(): readonly string[] {
  const prefixes = ["VIRTUAL_ENV", "CONDA_PREFIX"].flatMap((name) => variable(name));
  const interpreters = variable("PATH")
    .flatMap((value) => value.split(path.delimiter))
    .map((folder) => path.join(folder, "python3"))
    .filter(existsSync);
  const ofInterpreters = interpreters
    .flatMap((file) => [file, realpathSync(file)])
    .map((file) => path.dirname(path.dirname(file)));
  return [...new Set([...prefixes, ...ofInterpreters, "/usr", "/usr/local"])].flatMap((prefix) =>
    matching(`${prefix}/lib`, /^python3/).flatMap((python) => [`${python}/site-packages`, `${python}/dist-packages`]),
  );
}

function matching(folder: string, pattern: RegExp): readonly string[] {
  try {
    return readdirSync(folder)
      .filter((name) => pattern.test(name))
      .toSorted()
      .map((name) => path.join(folder, name));
  } catch {
    return [];
  }
}

/** These variables configure the loader and the toolkit, not Braid. */
function variable(name: string): readonly string[] {
  // oxlint-disable-next-line node/no-process-env
  const value = process.env[name];
  return value === undefined || value === "" ? [] : [value];
}
