/** Checks whether this machine can run the CUDA back end, before processes are started for it. */
import { fail } from "../../diagnostics/diagnostic.ts";
import { driverPrototypes, type Out } from "./bindings/driver-api.ts";
import { loadLibrary } from "./bindings/native-library.ts";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import process from "node:process";

/** Throws `backend-unavailable` if there is no driver, or fewer than `count` GPUs. */
export function requireGpus(count: number): void {
  const { functions } = loadLibrary("driver", driverPrototypes);
  const found: Out = [0];
  const status = functions.cuInit(0) || functions.cuDeviceGetCount(found);
  if (status === 0 && Number(found[0]) >= count) return;
  const gpus = Number(found[0]);
  fail({
    code: "backend-unavailable",
    message: gpus === 0 ? "this machine has no GPU that the driver can use" : "this machine has too few GPUs",
    place: { kind: "option", text: "--on cuda --devices" },
    found: status === 0 ? `${gpus} GPU${gpus === 1 ? "" : "s"}` : `CUDA error ${status} when the driver starts`,
    expected: `${count} GPU${count === 1 ? "" : "s"}, one per device`,
    help:
      gpus === 0
        ? "run on the CPU (--on cpu), or see `braid doctor`"
        : `use --devices ${gpus}, or check CUDA_VISIBLE_DEVICES`,
  });
}

/* Files that later processes find again. A cache that cannot be read or written costs time but never fails a run. */

/** Null if there is no such file. */
export function readCached(file: string): Uint8Array | null {
  try {
    return new Uint8Array(readFileSync(file));
  } catch {
    return null;
  }
}

export function writeCached(file: string, bytes: Uint8Array): void {
  try {
    mkdirSync(path.dirname(file), { recursive: true });
    // Other ranks write the same file. A rename shows it whole or not at all.
    const unfinished = `${file}.${process.pid}`;
    writeFileSync(unfinished, bytes);
    renameSync(unfinished, file);
  } catch {
    // The run goes on without a cache.
  }
}
