/** `braid run --on mpi` on two hosts that share nothing but a network, in namespaces: the bits of one process. */
import { spawn } from "node:child_process";
import path from "node:path";
import process from "node:process";
import { afterAll, describe, expect, it } from "vitest";
import { mpirunFlags, openMpi } from "../support/mpirun-on-hosts.ts";
import { openTwoHosts } from "../support/two-hosts.ts";
import { fingerprintOf, rootVariables } from "./under-mpi.ts";

const hosts = process.platform === "linux" ? await openTwoHosts() : "namespaces are Linux's";
if (typeof hosts === "string") console.log(`test/mpi/two-hosts is skipped: ${hosts}`);
afterAll(() => {
  if (typeof hosts !== "string") hosts.close();
});

const root = path.resolve(import.meta.dirname, "../..");

interface Ended {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

function run([program = "", ...args]: readonly string[]): Promise<Ended> {
  return new Promise((resolve) => {
    // oxlint-disable-next-line node/no-process-env -- what the command inherits
    const env = { ...process.env, ...rootVariables };
    const child = spawn(program, args, { cwd: root, env, stdio: ["ignore", "pipe", "pipe"], timeout: 40_000 });
    let [out, err] = ["", ""];
    child.stdout.on("data", (text: Buffer) => (out += text.toString()));
    child.stderr.on("data", (text: Buffer) => (err += text.toString()));
    child.on("close", (status) => resolve({ status, out, err }));
  });
}

describe.skipIf(typeof hosts === "string" || openMpi === null)("two hosts", () => {
  // MPICH 4.0 runs there, too, but its MPI_Finalize over UCX and TCP sometimes does not end.
  it("give the bits of one process under Open MPI", async () => {
    if (typeof hosts === "string" || openMpi === null) return;
    const args = [path.join(root, "examples/allgather-matmul.ts"), "--devices", "4", "--json"];
    const command = [process.execPath, path.join(root, "dist/cli/main.js"), "run", ...args, "--on", "mpi"];
    const { status, out, err } = await run(hosts.on(0, [openMpi, "-np", "4", ...mpirunFlags(hosts), ...command]));
    expect([status, err]).toEqual([0, ""]);
    expect(await fingerprintOf(out)).toEqual(await fingerprintOf(null, args));
  }, 60_000);
});
