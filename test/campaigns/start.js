/** Runs main.ts with the sources as "braid", as the tests do: the built package would be a second instance. */
import { createJiti } from "jiti";

const source = (file) => new URL(`../../src/${file}`, import.meta.url).pathname;
const alias = { "braid/cpu": source("cpu.ts"), "braid/cuda": source("cuda.ts"), braid: source("index.ts") };
await createJiti(import.meta.url, { alias }).import("./main.ts");
