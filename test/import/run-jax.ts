/**
 * Models that JAX 0.11.2 printed, with the arguments and results that it computed on 8 CPU devices. Each runs on the
 * devices that it is sharded for.
 */
import { readFileSync } from "node:fs";
import path from "node:path";
import { importModel } from "@braid-compiler/braid";
import { runRecorded } from "./run-recorded.ts";

const folder = path.join(import.meta.dirname, "jax");

/** Forms of one MLP, which have its arguments and results. */
const ofMlp: ReadonlySet<string> = new Set(["mlp-sp", "mlp-dp-tp", "shard-map-mlp"]);

/** Runs the model on its devices, and answers with what moves on rank 0. */
export async function runJax(name: string): Promise<string> {
  const file = path.join(folder, name);
  const model = await importModel(readFileSync(`${file}.mlir`, "utf8"), { file: `${name}.mlir` });
  const arrays = path.join(folder, `${ofMlp.has(name) ? "mlp-tp" : name}.npz`);
  return runRecorded(model, arrays, model.devices ?? 0);
}
