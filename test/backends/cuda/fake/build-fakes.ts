/** Builds the fake libraries in a folder, and returns the environment variables with which a process finds them. */
import { mkdtempSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { builtFolder, compile, headerFolder, kernelFolder } from "../emulate/compiler.ts";

export interface Fakes {
  /** Of these processes alone: their kernels and the calls that they made. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
}

/** One library, because streams of the fake driver run what all of them issue. */
const sources = ["fake-libraries.cpp", "fake-cublaslt.cpp", "fake-cudnn.cpp", "fake-nccl.cpp"] as const;
const library = "libcuda.so.1";
const otherNames = ["libnvrtc.so.13", "libcublasLt.so.13", "libcudnn.so.9", "libnccl.so.2"] as const;

const inFolder = (names: readonly string[]): readonly string[] =>
  names.map((name) => path.join(import.meta.dirname, name));

function librariesFolder(): string {
  return builtFolder("fakes", inFolder(sources), (folder) => {
    const flags = ["-o", path.join(folder, library), "-lrt", "-ldl"];
    compile(["-shared", "-I", headerFolder(), ...inFolder(sources), ...flags]);
    for (const name of otherNames) symlinkSync(library, path.join(folder, name));
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
      FAKE_CUDA_COMPILED: kernelFolder(),
      FAKE_CUDA_DEVICES: String(devices),
      FAKE_CUDA_LOG: path.join(folder, "calls"),
    },
  };
}
