/**
 * Findings about native code: the foreign-function interface, BLAS, and the NVIDIA stack that the CUDA back end needs.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import process from "node:process";
import { cudaFindings } from "./cuda.ts";
import type { DoctorFinding } from "./finding.ts";

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

export function nativeFindings(): readonly DoctorFinding[] {
  const search = createLibrarySearch();
  return [foreignFunctions(), ...libraryRows.map((row) => library(search, row)), ...cudaFindings()];
}

function foreignFunctions(): DoctorFinding {
  const gives = "calls into native libraries (--on cuda, --blas auto)";
  const require = createRequire(import.meta.url);
  try {
    return { name: "FFI", status: "ok", detail: `koffi at ${require.resolve("koffi")}`, gives, lookedIn: [] };
  } catch {
    const lookedIn = (require.resolve.paths("koffi") ?? []).filter((folder) => existsSync(folder));
    return { name: "FFI", status: "missing", detail: "the package koffi is not installed", gives, lookedIn };
  }
}

function library(search: LibrarySearch, { name, stems, gives }: LibraryRow): DoctorFinding {
  const found = stems.flatMap((stem) => findLibrary(search, stem));
  if (found.length > 0) return { name, status: "ok", detail: found.join("\n"), gives, lookedIn: [] };
  const detail = `no ${stems.join(", ")}`;
  const cache = search.cached.length > 0 ? ["the loader's cache (ldconfig -p)"] : [];
  return { name, status: "missing", detail, gives, lookedIn: [...search.directories, ...cache] };
}

// Finds shared libraries by the stem of their names where the dynamic loader would look, without loading them.

interface LibrarySearch {
  readonly directories: readonly string[];
  /** Paths in the loader's cache; empty without one. */
  readonly cached: readonly string[];
}

/** Directories that the loader does not list but installers use. */
const installerDirectories: readonly string[] = [
  "/usr/lib",
  "/usr/lib64",
  "/usr/local/lib",
  "/usr/lib/x86_64-linux-gnu",
  "/usr/lib/aarch64-linux-gnu",
  "/usr/local/cuda/lib64",
  "/usr/local/cuda/targets/x86_64-linux/lib",
  "/usr/local/nvidia/lib64",
  "/opt/OpenBLAS/lib",
  "/opt/intel/oneapi/mkl/latest/lib",
  "/opt/homebrew/opt/openblas/lib",
  "/usr/local/opt/openblas/lib",
];

function createLibrarySearch(): LibrarySearch {
  // The dynamic loader reads this variable, so this search does too. It configures the loader, not Braid.
  // oxlint-disable-next-line node/no-process-env
  const own = (process.env["LD_LIBRARY_PATH"] ?? "").split(path.delimiter).filter((entry) => entry !== "");
  return { directories: [...own, ...installerDirectories], cached: loaderCache() };
}

/**
 * Paths of files named `<stem>.so`, `<stem>.so.3`, `<stem>.dylib` or `<stem>.dll`, in the loader's order, without
 * repetition.
 */
export function findLibrary(search: LibrarySearch, stem: string): readonly string[] {
  const matches = (file: string): boolean => {
    const name = path.basename(file);
    return name.startsWith(`${stem}.`) && /\.(so(\.\d+)*|dylib|dll)$/.test(name);
  };
  const listed = search.directories.flatMap((directory) =>
    entries(directory)
      .filter(matches)
      .map((name) => path.join(directory, name)),
  );
  return [...new Set([...listed, ...search.cached.filter(matches)])];
}

function entries(directory: string): readonly string[] {
  try {
    return readdirSync(directory).toSorted((a, b) => a.localeCompare(b));
  } catch {
    return [];
  }
}

function loaderCache(): readonly string[] {
  if (process.platform !== "linux") return [];
  for (const program of ["/sbin/ldconfig", "/usr/sbin/ldconfig"]) {
    try {
      const text = execFileSync(program, ["-p"], {
        encoding: "utf8",
        timeout: 5000,
        stdio: ["ignore", "pipe", "ignore"],
      });
      return text.split("\n").flatMap((line) => line.split(" => ")[1] ?? []);
    } catch {
      // Without ldconfig or its cache, only the directories are searched.
    }
  }
  return [];
}
