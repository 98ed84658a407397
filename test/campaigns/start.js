/** Runs main.ts with the sources as the package, as the tests do: the built package would be a second instance. */
import { createJiti } from "jiti";

const source = (file) => new URL(`../../src/${file}`, import.meta.url).pathname;
const alias = {
  "@braid-compiler/braid/cpu": source("cpu.ts"),
  "@braid-compiler/braid/cuda": source("cuda.ts"),
  "@braid-compiler/braid/internals": source("internals.ts"),
  "@braid-compiler/braid": source("index.ts"),
};
await createJiti(import.meta.url, { alias }).import("./main.ts");
