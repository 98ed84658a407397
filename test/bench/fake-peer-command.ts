/** The command that stands for Python with PyTorch. */
import path from "node:path";
import process from "node:process";

const jiti = path.resolve(import.meta.dirname, "../../node_modules/jiti/lib/jiti-cli.mjs");

export const fakePeer: readonly [string, string, string] = [
  process.execPath,
  jiti,
  path.join(import.meta.dirname, "fake-peer.ts"),
];
