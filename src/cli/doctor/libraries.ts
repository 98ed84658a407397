/**
 * Finds shared libraries by the stem of their names where the dynamic loader would look, without loading them.
 */
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import path from "node:path";
import process from "node:process";

export interface LibrarySearch {
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

export function createLibrarySearch(): LibrarySearch {
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
