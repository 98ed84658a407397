/** Findings about the machine and Node, which the CPU back end needs. */
import os from "node:os";
import process from "node:process";
import { createWasmMemory, instantiateWasm } from "../../support/webassembly.ts";
import type { Finding } from "./finding.ts";

/** The oldest Node that package.json allows. */
const oldestNode = [20, 19] as const;

/** A module of one function that splats an i32x4: it compiles only where SIMD is supported. */
const simdModule = new Uint8Array([
  0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00, 0x01, 0x05, 0x01, 0x60, 0x00, 0x01, 0x7b, 0x03, 0x02, 0x01, 0x00,
  0x0a, 0x08, 0x01, 0x06, 0x00, 0x41, 0x00, 0xfd, 0x11, 0x0b,
]);

export function machineFindings(): readonly Finding[] {
  const here = { lookedIn: [] } as const;
  const [cpu] = os.cpus();
  const simd = hasSimd();
  return [
    {
      name: "Node",
      status: isRecent(process.versions.node) ? "ok" : "too-old",
      detail: `${process.version} (needs ${oldestNode.join(".")} or newer)`,
      gives: "runs Braid",
      ...here,
    },
    {
      name: "platform",
      status: "ok",
      detail: `${process.platform} ${process.arch}, ${os.release()}`,
      gives: "",
      ...here,
    },
    {
      name: "cores",
      status: "ok",
      detail: `${os.availableParallelism()} (${cpu?.model.trim() ?? "unknown model"})`,
      gives: "",
      ...here,
    },
    {
      name: "memory",
      status: "ok",
      detail: `${gibibytes(os.totalmem())} GiB, ${gibibytes(os.freemem())} GiB free`,
      gives: "all ranks' tensors on the CPU",
      ...here,
    },
    {
      name: "WebAssembly SIMD",
      status: simd ? "ok" : "missing",
      detail: simd ? "128-bit" : "not supported by this Node",
      gives: "the CPU's matmul kernels",
      ...here,
    },
  ];
}

function hasSimd(): boolean {
  try {
    instantiateWasm(simdModule, createWasmMemory(0));
    return true;
  } catch {
    return false;
  }
}

function isRecent(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1]);
}

function gibibytes(bytes: number): string {
  return (bytes / 2 ** 30).toFixed(1);
}
