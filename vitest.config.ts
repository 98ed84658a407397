import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

// Tests run the sources; examples, which import "braid", get the same instance.
const source = (file: string): string => fileURLToPath(new URL(`./src/${file}`, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      { find: /^braid$/, replacement: source("index.ts") },
      { find: /^braid\/(cpu|cuda)$/, replacement: source("$1.ts") },
    ],
  },
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 30_000,
    reporters: ["default", "./test/totals-reporter.ts"],
  },
});
