/**
 * Search paths of NVIDIA's libraries: the loader's own path, the toolkit's folders, then the wheels of a Python
 * environment, where a machine with PyTorch has them. Nothing is loaded here; `braid doctor` shows the same paths.
 */
import { existsSync, readdirSync, realpathSync } from "node:fs";
import path from "node:path";
import process from "node:process";

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
export function libraryCandidates(library: CudaLibrary): readonly string[] {
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
