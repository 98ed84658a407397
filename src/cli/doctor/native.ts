/**
 * Findings about native code: the foreign-function interface, BLAS, and the NVIDIA stack that the CUDA back end needs.
 */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { cudaFindings } from "./cuda.ts";
import type { Finding } from "./finding.ts";
import { createLibrarySearch, findLibrary, type LibrarySearch } from "./libraries.ts";

interface LibraryRow {
  readonly name: string;
  /** Names of the library; one of them suffices. */
  readonly stems: readonly string[];
  readonly gives: string;
}

const libraryRows: readonly LibraryRow[] = [
  {
    name: "BLAS",
    stems: ["libopenblas", "libblis", "libmkl_rt"],
    gives: "GEMMs of floats on the CPU (--blas auto)",
  },
];

export function nativeFindings(): readonly Finding[] {
  const search = createLibrarySearch();
  return [foreignFunctions(), ...libraryRows.map((row) => library(search, row)), ...cudaFindings()];
}

function foreignFunctions(): Finding {
  const gives = "calls into native libraries (--on cuda, --blas auto)";
  const require = createRequire(import.meta.url);
  try {
    return { name: "FFI", status: "ok", detail: `koffi at ${require.resolve("koffi")}`, gives, lookedIn: [] };
  } catch {
    const lookedIn = (require.resolve.paths("koffi") ?? []).filter((folder) => existsSync(folder));
    return { name: "FFI", status: "missing", detail: "the package koffi is not installed", gives, lookedIn };
  }
}

function library(search: LibrarySearch, { name, stems, gives }: LibraryRow): Finding {
  const found = stems.flatMap((stem) => findLibrary(search, stem));
  if (found.length > 0) return { name, status: "ok", detail: found.join("\n"), gives, lookedIn: [] };
  const detail = `no ${stems.join(", ")}`;
  const cache = search.cached.length > 0 ? ["the loader's cache (ldconfig -p)"] : [];
  return { name, status: "missing", detail, gives, lookedIn: [...search.directories, ...cache] };
}
