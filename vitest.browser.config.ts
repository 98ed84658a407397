/** Tests in the system's Chromium: `npm run test:browser`. No other run includes them. */
import { defineConfig } from "vitest/config";
import base from "./vitest.config.ts";

export default defineConfig({
  resolve: base.resolve ?? {},
  test: {
    name: "browser",
    include: ["test/browser/**/*.browser.test.ts"],
    reporters: ["default", "./test/totals-reporter.ts"],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Pages measure times.
    fileParallelism: false,
  },
});
