/**
 * Two hosts on this machine, in namespaces of their own: each has its name, its /etc/hosts and its /dev/shm, and they
 * share no network but a cable. On host-a its own name is a loopback address, as Debian sets it up.
 */
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export interface TwoHosts {
  /** The command line that runs a command on a host. */
  readonly on: (host: 0 | 1, command: readonly string[]) => readonly string[];
  /** The same for a process of the other host. */
  readonly fromOther: (host: 0 | 1, command: readonly string[]) => readonly string[];
  /** A folder that both see. */
  readonly folder: string;
  /** Unplugs the cable. */
  readonly unplug: () => void;
  readonly close: () => void;
}

export const hostNames = ["host-a", "host-b"] as const;
export const addresses = ["10.77.0.1", "10.77.0.2"] as const;
export const network = "10.77.0.0/24";
export const addresses6 = ["fd77::1", "fd77::2"] as const;

const unshared = ["-n", "-u", "-m", "-i", "sleep", "300"] as const;

/** A message if the system does not allow it. */
export async function openTwoHosts(): Promise<TwoHosts | string> {
  const folder = mkdtempSync(path.join(tmpdir(), "braid-hosts-"));
  const holders: number[] = [];
  const close = (): void => {
    for (const pid of holders) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It has ended.
      }
    }
    rmSync(folder, { recursive: true, force: true });
  };
  const fromOther: TwoHosts["fromOther"] = (host, command) => {
    const target = String(holders[host] ?? 0);
    return ["nsenter", "-t", target, "-n", "-u", "-m", "-i", ...command];
  };
  const user = (): readonly string[] => ["nsenter", "-t", String(holders[0]), "-U", "--preserve-credentials"];
  const on: TwoHosts["on"] = (host, command) => [...user(), ...fromOther(host, command)];
  const sh = (host: 0 | 1, script: string): void => {
    const [program = "", ...args] = on(host, ["sh", "-ec", script]);
    execFileSync(program, args, { stdio: "pipe", timeout: 10_000 });
  };
  try {
    holders.push(await started("unshare", ["-r", ...unshared]));
    // In the same user namespace, so that they may share a cable.
    const [enter = "", ...flags] = user();
    holders.push(await started(enter, [...flags, "unshare", ...unshared]));
    for (const host of [0, 1] as const) {
      const own = host === 0 ? "127.0.1.1" : addresses[0];
      const file = path.join(folder, `hosts-${host}`);
      writeFileSync(file, `127.0.0.1 localhost\n${own} ${hostNames[0]}\n${addresses[1]} ${hostNames[1]}\n`);
      const files = `mount --bind ${file} /etc/hosts; mount -t tmpfs tmpfs /dev/shm; mount -t sysfs sysfs /sys`;
      sh(host, `hostname ${hostNames[host]}; ip link set lo up; ${files}`);
    }
    sh(0, `ip link add cable0 type veth peer name cable1; ip link set cable1 netns ${holders[1]}`);
    for (const host of [0, 1] as const) {
      const cable = `dev cable${host}`;
      sh(host, `ip addr add ${addresses[host]}/24 ${cable}; ip addr add ${addresses6[host]}/64 ${cable} nodad`);
      sh(host, `ip link set cable${host} up`);
    }
  } catch (error) {
    close();
    return `namespaces cannot be made here: ${error instanceof Error ? error.message.split("\n").slice(0, 2).join(": ") : String(error)}`;
  }
  return { on, fromOther, folder, unplug: () => sh(0, "ip link set cable0 down"), close };
}

/** Resolves to the process's number once it is in namespaces of its own. */
async function started(program: string, args: readonly string[]): Promise<number> {
  const child = spawn(program, args, { stdio: "ignore" });
  const { pid } = child;
  const failures: Error[] = [];
  child.once("error", (error) => failures.push(error));
  child.once("exit", (status) => failures.push(new Error(`${program} ended with status ${status}`)));
  const deadline = Date.now() + 5000;
  while (pid === undefined || !isSleeping(pid)) {
    const [failure] = failures;
    if (failure !== undefined) throw failure;
    if (Date.now() > deadline) throw new Error(`${program} made no namespaces`);
    await sleep(10);
  }
  return pid;
}

/** unshare starts the program when its namespaces are complete. */
function isSleeping(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim() === "sleep";
  } catch {
    return false;
  }
}
