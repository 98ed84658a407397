/** PyTorch's process ends with the rank that started it, even while it waits in a collective. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { nodeScript } from "../support/node-script.ts";

const root = path.resolve(import.meta.dirname, "../..");
const hasPython = spawnSync("python3", ["--version"]).status === 0 && process.platform === "linux";

function isAlive(pid: number): boolean {
  try {
    // A process that has ended and has no parent to say so is "Z" for a moment.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}

it.skipIf(!hasPython)("when it is killed", async () => {
  const script = path.join(root, "bench/peers/torch_peer.py");
  const modules = path.join(root, "test/bench/fake-torch");
  const owner = spawn(process.execPath, [await nodeScript("test/bench/peer-owner.ts"), script, modules]);
  const said: readonly unknown[] = await once(owner.stdout.setEncoding("utf8"), "data");
  expect(said).toEqual(["ready\n"]);
  const children = readFileSync(`/proc/${owner.pid}/task/${owner.pid}/children`, "utf8").trim().split(" ").map(Number);
  expect(children).toHaveLength(1);
  owner.kill("SIGKILL");
  const deadline = performance.now() + 5000;
  while (children.some(isAlive) && performance.now() < deadline) await sleep(20);
  const left = children.filter(isAlive);
  for (const pid of left) process.kill(pid, "SIGKILL");
  expect(left).toEqual([]);
});
