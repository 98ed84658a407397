/** Builds the fake libraries into a folder and says what a process has to set to find them. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

export interface Fakes {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
}

const here = import.meta.dirname;
const emulate = path.join(path.dirname(here), "emulate");

export function buildFakes(devices: number): Fakes {
  const folder = mkdtempSync(path.join(tmpdir(), "braid-fakes-"));
  const flags = ["-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-I", emulate];
  const build = (source: string, library: string): void => {
    const files = [path.join(here, source), "-o", path.join(folder, library)];
    execFileSync("g++", [...flags, ...files, "-lrt", "-ldl"], { stdio: "pipe" });
  };
  build("fake-libraries.cpp", "libcuda.so.1");
  build("fake-nccl.cpp", "libnccl.so.2");
  for (const name of ["libnvrtc.so.13", "libcublasLt.so.13"]) symlinkSync("libcuda.so.1", path.join(folder, name));
  return {
    folder,
    env: {
      LD_LIBRARY_PATH: folder,
      XDG_CACHE_HOME: path.join(folder, "cache"),
      FAKE_CUDA_HEADER: path.join(emulate, "cuda-on-cpu.hpp"),
      FAKE_CUDA_KERNELS: folder,
      FAKE_CUDA_DEVICES: String(devices),
      FAKE_CUDA_LOG: path.join(folder, "calls"),
    },
  };
}
