import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { builtSources } from "./test/built-sources.ts";

// Tests run the sources; examples, which import "@braid-compiler/braid", get the same instance.
const source = (file: string): string => fileURLToPath(new URL(`./src/${file}`, import.meta.url));

const long = "test/**/*.long.test.ts";
const sampled = "test/**/*.sampled.test.ts";

export default defineConfig({
  plugins: [builtSources()],
  resolve: {
    alias: [
      { find: /^@braid-compiler\/braid$/, replacement: source("index.ts") },
      { find: /^@braid-compiler\/braid\/(cpu|cuda|mpi|internals)$/, replacement: source("$1.ts") },
    ],
  },
  test: {
    // Braid has no module state, so that files can share a process: loading it anew for each took a third of the time.
    isolate: false,
    // By default a core is left to vitest itself, which then has nothing to do.
    maxWorkers: availableParallelism(),
    // Most objects of a test die with it: a larger nursery halves what the collector takes.
    execArgv: ["--max-semi-space-size=64"],
    // The long suite and the next run find what this one has transformed, by its content.
    experimental: { fsModuleCache: true },
    globalSetup: ["./test/temporary-folder.ts"],
    setupFiles: ["property-seed", "stack-lines", "one-core", "equal-bytes"].map((name) => `./test/support/${name}.ts`),
    reporters: ["default", "./test/totals-reporter.ts"],
    projects: [
      {
        extends: true,
        test: {
          name: "quick",
          include: ["test/**/*.test.ts"],
          exclude: [long, "test/browser/**"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          provide: { suite: "quick" },
        },
      },
      {
        extends: true,
        test: {
          name: "long",
          include: [long, sampled],
          testTimeout: 240_000,
          hookTimeout: 240_000,
          provide: { suite: "long" },
        },
      },
    ],
  },
});
