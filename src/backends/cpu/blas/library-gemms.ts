/** A kernel library's GEMM option for the BLAS of a file. */
import type { KernelLibraryOptions } from "../../../kernels/kernel-library.ts";
import { invariant } from "../../../support/invariant.ts";
import { openBlas } from "./blas-library.ts";
import { blasGemms } from "./blas-gemms.ts";

/** Empty for null. The file is one that `findBlas` found in this process. */
export function libraryGemms(file: string | null, buffer: ArrayBufferLike): Pick<KernelLibraryOptions, "gemms"> {
  if (file === null) return {};
  const blas = openBlas(file);
  invariant(blas !== null, "a library that was opened once can be opened again", { file });
  return { gemms: blasGemms(blas, buffer) };
}
