#!/usr/bin/env node
/**
 * Stands for Python with PyTorch: answers as bench/peers/torch_peer.py does, with times that tell the implementation. FAKE_PEER says how it misbehaves: absent (ends at once, as a
 * Python without PyTorch), silent (never answers a run), odd (answers a run with something else).
 */
import { createInterface } from "node:readline";
import process from "node:process";

const manner = process.env["FAKE_PEER"] ?? "well";
const answer = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
const times = { "compute-only": 1, nccl: 3, "async-tp": 2 };

if (manner === "absent") {
  process.stderr.write("ModuleNotFoundError: No module named 'torch'\n");
  process.exit(1);
}
answer({ ready: Number(process.env["RANK"]), torch: "fake" });
for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  if (request.do === "exit") break;
  if (request.do === "setup") answer({ impls: ["compute-only", "nccl", "async-tp"] });
  else if (request.do === "validate") answer({ error: 0.5, bound: 2 });
  else if (manner === "odd") answer({ ms: "soon" });
  else if (manner === "refusing" && request.impl === "async-tp") answer({ failed: "RuntimeError: no symmetric memory" });
  else if (manner !== "silent") {
    const time = times[request.impl] * (1 + Number(process.env["RANK"] ?? 0) / 10);
    answer({ ms: Array(request.runs).fill(time), host_us: Array(request.runs).fill(10 * time) });
  }
}
