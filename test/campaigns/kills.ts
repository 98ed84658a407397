import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { at } from "../../src/support/invariant.ts";
import { createRandom } from "../../src/support/random.ts";
import { nodeScript } from "../support/node-script.ts";
import type { Campaign } from "./campaign.ts";

const worldSize = 3;
const mostSeconds = 12;
/** Ranks start, join and exchange within this time. */
const mostMilliseconds = 600;

const rankSignals = ["SIGKILL", "SIGSTOP"] as const;
const launcherSignals = ["SIGKILL", "SIGTERM", "SIGINT"] as const;
const victims = ["rank", "launcher", "connection", "worker"] as const;

/** A process with all that it starts, in a process group of its own. */
function start(script: string, args: readonly string[], folder: string) {
  const child = spawn(process.execPath, [script, ...args], {
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    // Node finds the packages below the repository, and files go to a folder that is looked at.
    env: { PATH: process.env.PATH, TMPDIR: folder },
  });
  const lines: string[] = [];
  let err = "";
  child.stdout.on("data", (data: Buffer) => lines.push(...data.toString().trim().split("\n")));
  child.stderr.on("data", (data: Buffer) => {
    err += data.toString();
  });
  return { pid: child.pid ?? -1, lines, errors: () => err };
}

function groupLives(leader: number): boolean {
  try {
    process.kill(-leader, 0);
    return true;
  } catch {
    return false;
  }
}

const socket = /^socket:\[(?<inode>\d+)\]$/u;

/** The ports on which a process listens. */
function portsOf(pid: number): readonly number[] {
  try {
    const folder = `/proc/${pid}/fd`;
    const links = readdirSync(folder).map((name) => readlinkSync(path.join(folder, name)));
    const own = new Set(links.flatMap((link) => socket.exec(link)?.groups?.inode ?? []));
    return listening().flatMap(({ port, inode }) => (own.has(inode) ? [port] : []));
  } catch {
    // It has ended.
    return [];
  }
}

function listening(): readonly { readonly port: number; readonly inode: string }[] {
  const listens = "0A";
  return ["tcp", "tcp6"].flatMap((file) =>
    readFileSync(`/proc/net/${file}`, "utf8")
      .split("\n")
      .slice(1)
      .flatMap((line) => {
        const cells = line.trim().split(/\s+/u);
        const port = Number.parseInt(cells[1]?.split(":")[1] ?? "", 16);
        return cells[3] === listens ? [{ port, inode: cells[9] ?? "" }] : [];
      }),
  );
}

/** What is left of a trial, as text; empty if nothing is. */
async function leftOf(leader: number, ports: readonly number[], folder: string): Promise<readonly string[]> {
  const begin = Date.now();
  while (groupLives(leader) && Date.now() - begin < mostSeconds * 1000) await sleep(20);
  const left = groupLives(leader) ? ["processes"] : [];
  if (left.length > 0) process.kill(-leader, "SIGKILL");
  const open = new Set(listening().map(({ port }) => port));
  if (ports.some((port) => open.has(port))) left.push("a port");
  left.push(...readdirSync(folder).map((name) => `the file ${name}`));
  const shared = readdirSync("/dev/shm").filter((name) => name.includes(`-${leader}-`));
  return [...left, ...shared.map((name) => `the shared memory ${name}`)];
}

export const kills: Campaign = {
  what: `a rank, launcher, connection or worker thread in turn is killed or stopped at a random moment: within ${mostSeconds} s no process, port, file or shared memory is left, and runs on workers go on`,
  count: 200,
  run: async (count) => {
    const random = createRandom(1);
    const [launcher, rank, worker] = await Promise.all([
      nodeScript("test/launch/launcher-process.ts"),
      nodeScript("test/launch/rank-process.ts"),
      nodeScript("test/campaigns/worker-process.ts"),
    ]);
    const folder = mkdtempSync(path.join(tmpdir(), "braid-kills-"));
    const counts = new Map<string, number>();
    let failures = 0;
    for (let i = 0; i < count; i++) {
      const victim = at(victims, i % victims.length);
      const delay = random.integer(mostMilliseconds);
      const signals = victim === "rank" ? rankSignals : launcherSignals;
      const signal = at(signals, random.integer(signals.length));
      const number = random.integer(victim === "worker" ? 2 : worldSize);
      const { pid, lines, errors } =
        victim === "worker"
          ? start(worker, [String(delay), String(number)], folder)
          : start(launcher, [rank, victim === "connection" ? "drops" : "loops", String(worldSize), "2000"], folder);
      const ports = new Set<number>();
      const wrong: string[] = [];
      if (victim === "rank" || victim === "launcher") {
        // Ranks start when their launcher has; before that only the launcher can be struck.
        while (victim === "rank" && lines.length < worldSize && groupLives(pid)) await sleep(5);
        await sleep(delay);
        for (const port of portsOf(pid)) ports.add(port);
        const struck = victim === "rank" ? Number(lines[number]) : pid;
        process.kill(struck, signal);
      } else {
        await sleep(delay);
        for (const port of portsOf(pid)) ports.add(port);
      }
      wrong.push(...(await leftOf(pid, [...ports], folder)));
      if (victim === "worker") wrong.push(...lines, ...(errors() === "" ? [] : [errors()]));
      for (const name of readdirSync(folder)) rmSync(path.join(folder, name), { recursive: true });
      counts.set(victim, (counts.get(victim) ?? 0) + 1);
      if (wrong.length === 0) continue;
      failures++;
      console.log(
        `${i}: ${victim} ${victim === "rank" ? `${number}, ${signal}` : victim === "launcher" ? signal : number} after ${delay} ms: ${wrong.join("; ")}`,
      );
    }
    rmSync(folder, { recursive: true });
    const struck = [...counts].map(([victim, times]) => `${victim} ${times}`).join(", ");
    return { ok: failures === 0, text: `${struck}; ${failures} failures` };
  },
};
