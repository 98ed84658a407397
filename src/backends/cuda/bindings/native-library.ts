/**
 * Loads a library through koffi and binds a table of C prototypes. Handles and device pointers are plain numbers
 * (`uint64_t`; addresses are below 2^53). Arrays that C reads or writes during a call are typed arrays, and
 * out-parameters are arrays of one element.
 */
import { createRequire } from "node:module";
import type * as Koffi from "koffi";
import { DiagnosticError, fail } from "../../../diagnostics/diagnostic.ts";
import { keysOf } from "../../../support/keys-of.ts";
import { type CudaLibrary, cudaLibraries, libraryCandidates, libraryFolders } from "./library-places.ts";

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
  return fail({
    code: "backend-unavailable",
    message: `${title} is not installed on this machine, or cannot be loaded`,
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
    fail({
      code: "backend-unavailable",
      message: `this ${title} is too old for Braid`,
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
