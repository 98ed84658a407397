/**
 * Ends a vitest run with what failed, a few lines for each, and `N passed, N failed` alone on a line: a form that CI
 * systems read without knowing vitest, at the end, which a shortened log keeps.
 */
import type { Reporter, TestModule } from "vitest/node";

/** Errors as vitest hands them on. */
interface Thrown {
  readonly message: string;
  readonly name?: string;
}

const mostLines = 4;

function textOf({ name = "Error", message }: Thrown): string {
  const lines = message.split("\n").map((line) => (line.length > 300 ? `${line.slice(0, 300)} ...` : line));
  const shown = lines.length > mostLines ? [...lines.slice(0, mostLines), "..."] : lines;
  return `  ${[`${name}: ${shown[0] ?? ""}`, ...shown.slice(1)].join("\n  ")}`;
}

export default class TotalsReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandled: readonly Thrown[]): void {
    let passed = 0;
    let skipped = 0;
    const failures: string[] = [];
    const fail = (where: string, errors: readonly Thrown[]): void => {
      failures.push([`FAILED ${where}`, ...errors.map(textOf)].join("\n"));
    };
    for (const module of modules) {
      // Each of these fails the run without failing a test: a file that does not load, a hook, a stray rejection.
      if (module.errors().length > 0) fail(module.relativeModuleId, module.errors());
      for (const suite of module.children.allSuites()) {
        const errors = suite.errors();
        if (errors.length > 0) fail(`${module.relativeModuleId} > ${suite.fullName}`, errors);
      }
      for (const test of module.children.allTests()) {
        const { state, errors } = test.result();
        if (state === "passed") passed++;
        else if (state === "failed") fail(`${module.relativeModuleId} > ${test.fullName}`, errors);
        else skipped++;
      }
    }
    for (const error of unhandled) fail("outside every test", [error]);
    const rest = skipped === 0 ? "" : `, ${skipped} skipped`;
    const list = failures.map((text) => `\n${text}\n`).join("");
    process.stdout.write(`${list}\n${passed} passed, ${failures.length} failed${rest}\n`);
  }
}
