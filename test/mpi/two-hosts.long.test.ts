/** `braid run --on mpi` on two hosts that share nothing but a network, in namespaces: the bits of one process. */
import { spawn } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { afterAll, describe, expect, it } from "vitest";
import { hostNames, network, openTwoHosts, type TwoHosts } from "../support/two-hosts.ts";
import { fingerprintOf, launchers, rootVariables } from "./under-mpi.ts";

const hosts = process.platform === "linux" ? await openTwoHosts() : "namespaces are Linux's";
if (typeof hosts === "string") console.log(`test/mpi/two-hosts is skipped: ${hosts}`);
afterAll(() => {
  if (typeof hosts !== "string") hosts.close();
});

const root = path.resolve(import.meta.dirname, "../..");

/** Stands for ssh: opens a shell on the second host, without a connection. */
function agentOf({ folder, fromOther }: TwoHosts): string {
  const agent = path.join(folder, "agent");
  const until = `while [ "$1" != ${hostNames[1]} ]; do shift; done; shift`;
  writeFileSync(agent, `#!/bin/sh\n${until}\nexec ${fromOther(1, ["sh", "-c"]).join(" ")} "$*"\n`);
  chmodSync(agent, 0o755);
  return agent;
}

const flagsOf: Readonly<Record<string, (agent: string) => string>> = {
  "Open MPI": (agent) =>
    `--host ${hostNames.join(":2,")}:2 --bind-to none --mca plm_rsh_agent ${agent} --mca btl tcp,self ` +
    `--mca oob_tcp_if_include ${network} --mca btl_tcp_if_include ${network}`,
  MPICH: (agent) => `-hosts ${hostNames.join(",")} -ppn 2 -launcher rsh -launcher-exec ${agent} -iface cable0`,
};

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

describe.skipIf(typeof hosts === "string")("two hosts", () => {
  for (const { abi, file, obstacle } of launchers) {
    it.skipIf(obstacle !== "")(
      `give the bits of one process under ${abi}${obstacle}`,
      async () => {
        if (typeof hosts === "string") return;
        const args = [path.join(root, "examples/allgather-matmul.ts"), "--devices", "4", "--json"];
        const command = [process.execPath, path.join(root, "dist/cli/main.js"), "run", ...args, "--on", "mpi"];
        const flags = flagsOf[abi]?.(agentOf(hosts)).split(" ") ?? [];
        const { status, out, err } = await run(hosts.on(0, [file, "-np", "4", ...flags, ...command]));
        expect([status, err]).toEqual([0, ""]);
        expect(await fingerprintOf(out)).toEqual(await fingerprintOf(null, args));
      },
      60_000,
    );
  }
});
