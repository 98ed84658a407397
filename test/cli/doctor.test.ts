import { describe, expect, it } from "vitest";
import { cli } from "./captured-cli.ts";

describe("braid doctor", () => {
  it("says what is there and, for what is missing, where it looked", async () => {
    const { status, out, err } = await cli("doctor");
    expect([status, err]).toEqual([0, ""]);
    expect(out).toMatch(/^ok +Node +v\d+\.\d+\.\d+ \(needs 20\.19 or newer\) +runs Braid$/m);
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
