/** Ranks under other launchers' variables: rank 0 runs the hub, and the other ranks find it by a file or a token. */
import { chmod, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { describe, expect, it } from "vitest";
import { readTokenFile, tokenFile, writeTokenFile } from "../../src/launch/hub/token-file.ts";
import { type Ended, jobName, mpirun, rank, torchrun } from "./rank-under.ts";

const srun = (job: string, own: number, size: number): Record<string, string> => ({
  SLURM_PROCID: String(own),
  SLURM_STEP_NUM_TASKS: String(size),
  SLURM_LOCALID: String(own),
  SLURM_STEP_TASKS_PER_NODE: String(size),
  SLURM_JOB_ID: job,
  SLURM_STEP_ID: "0",
});

describe("other launchers", () => {
  it("meet by a file that only the user can read, which is gone afterwards", async () => {
    const job = jobName("meet");
    const results = await Promise.all([2, 1, 0].map((own) => rank(mpirun(job, own, 3), [])));
    expect(results.map(({ status, err }) => [status, err])).toEqual(Array(3).fill([0, ""]));
    await expect(stat(tokenFile(`mpirun-${job}-`))).rejects.toThrow("ENOENT");
  });

  it.each(Object.entries({ srun, torchrun }))("meet by a file under %s, two jobs at once", async (_, variables) => {
    const jobs = [jobName("first"), jobName("second")];
    const results = await Promise.all(jobs.flatMap((job) => [1, 0].map((own) => rank(variables(job, own, 2), []))));
    expect(results.map(({ status, err }) => [status, err])).toEqual(Array(4).fill([0, ""]));
  });

  it("are not misled by the file that a killed run left", async () => {
    const job = jobName("leftover");
    await writeTokenFile(tokenFile(`mpirun-${job}-`), { port: 1, token: "00" });
    const late = new Promise<Ended>((resolve) => {
      setTimeout(() => void rank(mpirun(job, 0, 2), []).then(resolve), 300);
    });
    const results = await Promise.all([rank(mpirun(job, 1, 2), []), late]);
    expect(results.map(({ status, err }) => [status, err])).toEqual(Array(2).fill([0, ""]));
  });

  it("say that rank 0 never came", async () => {
    const { status, err } = await rank(mpirun(jobName("alone"), 1, 2), ["work", "-1", "500"]);
    expect(status).toBe(3);
    expect(err).toContain("rank 0 has not opened the rendezvous on this host within 0.5 s");
  });

  it("meet at MASTER_ADDR with a token of the user's", async () => {
    const secret = { BRAID_TOKEN: "a secret of this test" };
    const results = await Promise.all([1, 0].map((own) => rank({ ...torchrun("none", own, 2), ...secret }, [])));
    expect(results.map(({ status, err }) => [status, err])).toEqual(Array(2).fill([0, ""]));
  });
});

describe("a token file", () => {
  it("is read only if it is the user's alone and whole", async () => {
    const folder = await mkdtemp(path.join(tmpdir(), "braid-token-"));
    const file = path.join(folder, "token");
    expect(await readTokenFile(file)).toBeNull();
    await writeTokenFile(file, { port: 5, token: "x" });
    expect(await readTokenFile(file)).toEqual({ port: 5, token: "x" });
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    await chmod(file, 0o644);
    expect(await readTokenFile(file)).toBeNull();
    await writeFile(file, "half a fi", { mode: 0o600 });
    await chmod(file, 0o600);
    expect(await readTokenFile(file)).toBeNull();
    await rm(folder, { recursive: true });
  });
});
