/** Ends a vitest run with `N passed, N failed` alone on a line: a form that CI systems read without knowing vitest. */
import type { Reporter, TestModule } from "vitest/node";

export default class TotalsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly unknown[]): void {
    let passed = 0;
    let skipped = 0;
    // An error outside every test, or a file that did not load, fails the run without failing a test.
    let failed = unhandled.length;
    for (const module of modules) {
      failed += module.errors().length;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === "passed") passed++;
        else if (state === "failed") failed++;
        else skipped++;
      }
    }
    const rest = skipped === 0 ? "" : `, ${skipped} skipped`;
    process.stdout.write(`\n${passed} passed, ${failed} failed${rest}\n`);
  }
}
