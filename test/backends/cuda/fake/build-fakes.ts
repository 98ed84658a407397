/** Builds the fake libraries in a folder, and returns the environment variables with which a process finds them. */
import { mkdtempSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { builtFolder, compile, headerFolder } from "../emulate/compiler.ts";

export interface Fakes {
  /** Of these processes alone: their kernels and the calls that they made. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
}

const sources = ["fake-libraries.cpp", "fake-nccl.cpp"].map((name) => path.join(import.meta.dirname, name));

function librariesFolder(): string {
  return builtFolder("fakes", sources, (folder) => {
    for (const [i, library] of ["libcuda.so.1", "libnccl.so.2"].entries()) {
      compile(["-shared", "-I", headerFolder(), sources[i] ?? "", "-o", path.join(folder, library), "-lrt", "-ldl"]);
    }
    for (const name of ["libnvrtc.so.13", "libcublasLt.so.13"]) symlinkSync("libcuda.so.1", path.join(folder, name));
  });
}

export function buildFakes(devices: number): Fakes {
  const folder = mkdtempSync(path.join(tmpdir(), "braid-fakes-"));
  return {
    folder,
    env: {
      LD_LIBRARY_PATH: librariesFolder(),
      XDG_CACHE_HOME: path.join(folder, "cache"),
      FAKE_CUDA_HEADER: path.join(headerFolder(), "cuda-on-cpu.hpp"),
      FAKE_CUDA_KERNELS: folder,
      FAKE_CUDA_DEVICES: String(devices),
      FAKE_CUDA_LOG: path.join(folder, "calls"),
    },
  };
}
