/**
 * A BLAS of the system, called through koffi on the calling thread. Both are optional: without koffi or a loadable
 * library, GEMMs run in WebAssembly.
 */
import { createRequire } from "node:module";
import type * as Koffi from "koffi";

/**
 * cblas_sgemm or cblas_dgemm: c = alpha * op(a) * op(b) + beta * c. Views stand for the addresses of their first
 * elements, which may be in shared memory.
 */
export type BlasGemm = (
  order: number,
  transposeA: number,
  transposeB: number,
  m: number,
  n: number,
  k: number,
  alpha: number,
  a: Float32Array | Float64Array,
  lda: number,
  b: Float32Array | Float64Array,
  ldb: number,
  beta: number,
  c: Float32Array | Float64Array,
  ldc: number,
) => void;

export interface Blas {
  /** The name under which the loader found it, so that another thread can open the same library. */
  readonly file: string;
  readonly sgemm: BlasGemm;
  readonly dgemm: BlasGemm;
}

/**
 * File names to ask the loader for, best first. Only libraries whose threads can be turned off, because Braid runs one
 * worker per core.
 */
export const blasFiles: readonly string[] = [
  "libopenblas.so.0",
  "libopenblas.so",
  "/opt/OpenBLAS/lib/libopenblas.so",
  "libopenblas.dylib",
  "/opt/homebrew/opt/openblas/lib/libopenblas.dylib",
  "/usr/local/opt/openblas/lib/libopenblas.dylib",
  "libopenblas.dll",
  "libblis.so.4",
  "libblis.so.3",
  "libblis.so",
  "libblis.dylib",
  "libmkl_rt.so.2",
  "libmkl_rt.so",
];

/** Functions that turn a library's own threads off. */
const threadSetters: readonly string[] = [
  "void openblas_set_num_threads(int)",
  "void bli_thread_set_num_threads(int64_t)",
  "void MKL_Set_Num_Threads(int)",
];

const gemmPrototype = (name: string, real: string): string =>
  `void ${name}(int, int, int, int, int, int, ${real}, const void *, int, const void *, int, ${real}, void *, int)`;

/** The first usable library; null if there is none. */
export function findBlas(): Blas | null {
  for (const file of blasFiles) {
    const found = openBlas(file);
    if (found !== null) return found;
  }
  return null;
}

/** Opens that library; null if koffi is not installed, or the library is missing or lacks a function. */
export function openBlas(file: string): Blas | null {
  try {
    // oxlint-disable-next-line typescript/no-unsafe-assignment -- require gives any; an optional package can not be imported statically
    const koffi: typeof Koffi = createRequire(import.meta.url)("koffi");
    const library = koffi.load(file);
    const setThreads = threadSetters.map((prototype) => functionOf(library, prototype)).find((each) => each !== null);
    if (setThreads === undefined) return null;
    setThreads(1);
    return {
      file,
      sgemm: library.func(gemmPrototype("cblas_sgemm", "float")),
      dgemm: library.func(gemmPrototype("cblas_dgemm", "double")),
    };
  } catch {
    return null;
  }
}

function functionOf(library: ReturnType<typeof Koffi.load>, prototype: string): ((threads: number) => void) | null {
  try {
    return library.func(prototype);
  } catch {
    return null;
  }
}
