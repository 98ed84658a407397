/** Flags with which Open MPI's mpirun starts two processes on each of two hosts in namespaces, without ssh. */
import { chmodSync, existsSync, writeFileSync } from "node:fs";
import path from "node:path";
import { hostNames, network, type TwoHosts } from "./two-hosts.ts";

/** Null if it is not installed. Debian's name, beside that of MPICH. */
export const openMpi = existsSync("/usr/bin/mpirun.openmpi") ? "/usr/bin/mpirun.openmpi" : null;

export function mpirunFlags(hosts: TwoHosts): readonly string[] {
  const flags =
    `--host ${hostNames.join(":2,")}:2 --bind-to none --mca plm_rsh_agent ${agentOf(hosts)} --mca btl tcp,self ` +
    `--mca oob_tcp_if_include ${network} --mca btl_tcp_if_include ${network}`;
  return flags.split(" ");
}

/** Stands for ssh: opens a shell on the second host, without a connection. */
function agentOf({ folder, fromOther }: TwoHosts): string {
  const agent = path.join(folder, "agent");
  const until = `while [ "$1" != ${hostNames[1]} ]; do shift; done; shift`;
  writeFileSync(agent, `#!/bin/sh\n${until}\nexec ${fromOther(1, ["sh", "-c"]).join(" ")} "$*"\n`);
  chmodSync(agent, 0o755);
  return agent;
}
