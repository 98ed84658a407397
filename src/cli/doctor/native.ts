/** Findings about native code: the foreign-function interface, BLAS, and the NVIDIA stack that the CUDA back end needs. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Finding } from "./finding.ts";
import { createLibrarySearch, findLibrary, type LibrarySearch } from "./libraries.ts";

interface LibraryRow {
  readonly name: string;
  /** Any of these stems will do. */
  readonly stems: readonly string[];
  readonly gives: string;
}

const libraryRows: readonly LibraryRow[] = [
  {
    name: "BLAS",
    stems: ["libopenblas", "libblis", "libmkl_rt"],
    gives: "float and double products on the CPU (--blas auto)",
  },
  { name: "CUDA driver", stems: ["libcuda"], gives: "runs on NVIDIA GPUs (--on cuda)" },
  { name: "NVRTC", stems: ["libnvrtc"], gives: "compiles kernels for GPUs (--on cuda)" },
  { name: "cuBLASLt", stems: ["libcublasLt"], gives: "matmul on GPUs (--on cuda)" },
  { name: "NCCL", stems: ["libnccl"], gives: "collectives between GPUs (--on cuda)" },
];

export function nativeFindings(): readonly Finding[] {
  const search = createLibrarySearch();
  return [foreignFunctions(), ...libraryRows.map((row) => library(search, row)), ...gpus()];
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

/** What the kernel driver reports on Linux: one finding per GPU, or one that says there is none. */
function gpus(): readonly Finding[] {
  const folder = "/proc/driver/nvidia/gpus";
  const gives = "runs on NVIDIA GPUs (--on cuda)";
  const models = entries(folder).map((bus) => {
    const [, model = "unknown model"] = /^Model:\s*(.+)$/m.exec(contents(`${folder}/${bus}/information`)) ?? [];
    return { name: "GPU", status: "ok", detail: `${model} at ${bus}`, gives, lookedIn: [] } as const;
  });
  if (models.length === 0) return [{ name: "GPU", status: "missing", detail: "none", gives, lookedIn: [folder] }];
  const [, driver = "unknown"] = /Kernel Module\s+(\S+)/.exec(contents("/proc/driver/nvidia/version")) ?? [];
  return [...models, { name: "NVIDIA kernel module", status: "ok", detail: driver, gives, lookedIn: [] }];
}

function entries(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function contents(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
