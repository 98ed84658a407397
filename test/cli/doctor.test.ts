import { mkdirSync, writeFileSync } from "node:fs";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { findLibrary } from "../../src/cli/doctor/native.ts";
import { cli } from "./captured-cli.ts";
import { ownFolder } from "./own-folder.ts";

const folder = ownFolder();

describe("findLibrary", () => {
  it("finds the files of a library, in the order of the folders, once each", () => {
    const [first, second] = [path.join(folder.path, "first"), path.join(folder.path, "second")];
    for (const place of [first, second]) mkdirSync(place);
    const names = ["libnccl.so.2", "libnccl.so", "libnccl_static.a", "libnccl.txt", "libncclx.so", "libcuda.dylib"];
    for (const name of names) writeFileSync(path.join(second, name), "");
    writeFileSync(path.join(first, "libnccl.so.2.27.3"), "");
    const search = {
      directories: [path.join(folder.path, "absent"), first, second],
      cached: [path.join(second, "libnccl.so.2"), "/opt/nccl/libnccl.so.2"],
    };
    expect(findLibrary(search, "libnccl")).toEqual([
      path.join(first, "libnccl.so.2.27.3"),
      path.join(second, "libnccl.so"),
      path.join(second, "libnccl.so.2"),
      "/opt/nccl/libnccl.so.2",
    ]);
    expect(findLibrary(search, "libcuda")).toEqual([path.join(second, "libcuda.dylib")]);
    expect(findLibrary(search, "libnvrtc")).toEqual([]);
  });
});

describe("braid doctor", () => {
  it("says what is there and, for what is missing, where it looked", async () => {
    const { status, out, err } = await cli("doctor");
    expect([status, err]).toEqual([0, ""]);
    expect(out).toMatch(/^ok +Node +v\d+\.\d+\.\d+ \(needs 20\.19 or newer\) +runs Braid$/m);
    expect(out).toMatch(/^ok +WebAssembly SIMD +128-bit/m);
    for (const name of [
      "platform",
      "cores",
      "memory",
      "FFI",
      "BLAS",
      "CUDA driver",
      "NVRTC",
      "cuBLASLt",
      "cuDNN",
      "NCCL",
      "GPU",
      "MPI",
    ]) {
      expect(out).toContain(name);
    }
  });

  it("as JSON", async () => {
    const { status, out } = await cli("doctor", "--json");
    expect(status).toBe(0);
    const { findings } = JSON.parse(out) as {
      findings: { name: string; status: string; detail: string; lookedIn: string[] }[];
    };
    expect(findings.find(({ name }) => name === "Node")).toMatchObject({ status: "ok" });
    const mpi = findings.find(({ name }) => name === "MPI");
    expect(mpi?.detail).toMatch(
      /^no libmpi|^.+ v?\d.*, \S*libmpi\S*, ABI of .+, threads: (single|funneled|serialized|multiple)$/m,
    );
    for (const { status: found, lookedIn } of findings) expect(lookedIn.length > 0).toBe(found === "missing");
  });
});
