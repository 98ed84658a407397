/** Processes under mpirun that do not agree, or of which one fails: one message, and all end. */
import { describe, expect, it } from "vitest";
import { launchers, underMpi } from "./under-mpi.ts";

const example = "examples/ring-allgather-matmul.ts";

const [openMpi] = launchers;
const missing = openMpi?.obstacle ?? ", skipped because there is no launcher";

describe.skipIf(openMpi === undefined || missing !== "")(`processes that differ${missing}`, () => {
  const launched = async (first: readonly string[], second: readonly string[]) => {
    if (openMpi === undefined) throw new Error("no launcher");
    return underMpi(openMpi, 1, [example, "--on", "mpi", ...first], [example, "--on", "mpi", ...second]);
  };

  it("in an option end all, with one message", async () => {
    const { status, err } = await launched(["--devices", "4"], ["--devices", "4", "--set", "M=96"]);
    expect(status).toBe(2);
    expect(err.split("error[program-differs]")).toHaveLength(2);
    expect(err).toContain("--set: M=96");
  }, 60_000);

  it("in number from the devices end all, with one message", async () => {
    const { status, err } = await launched(["--devices", "1"], ["--devices", "1"]);
    expect(status).toBe(2);
    expect(err.split("error[device-count]")).toHaveLength(2);
  }, 60_000);

  it("because one fails alone end all, and the first says why", async () => {
    const { status, err } = await launched(["--devices", "4"], ["--devices", "4", "--input", "nothing.npy"]);
    expect(status).not.toBe(0);
    expect(err.split("error[rank-failed]: process 1 failed")).toHaveLength(2);
    expect(err).toContain("nothing.npy");
  }, 60_000);
});
