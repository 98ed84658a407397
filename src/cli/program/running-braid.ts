/**
 * The modules that a program file gets for `import "@braid-compiler/braid"` and its subpaths. They are those of the
 * running Braid, so that only one instance exists, whatever is installed near the file. The API that builds programs is
 * loaded here, the rest of Braid when the file first uses it.
 */
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { packageFile } from "../../backends/package-file.ts";
import { diagnosticCodes } from "../../diagnostics/codes.ts";
import { DiagnosticError, renderDiagnostic } from "../../diagnostics/diagnostic.ts";
import { packageName, program } from "../../host/program-file.ts";
import { Fusion } from "../../ir/api/fusion.ts";
import * as ops from "../../ir/api/ops.ts";
import { DeviceMesh } from "../../ir/device-mesh.ts";
import { suggestion } from "../../support/wording.ts";

const require = createRequire(import.meta.url);

type Exports = Readonly<Record<string, unknown>>;

/** Exports of index.ts. */
export const builders: Exports = {
  ...ops,
  DeviceMesh,
  diagnosticCodes,
  DiagnosticError,
  Fusion,
  program,
  renderDiagnostic,
};

/** Exports that are a file of their own. */
const parts: ReadonlyMap<string, string> = new Map([["HostProgramBuilder", "dist/host/build/builder.js"]]);

export const runningBraid: Readonly<Record<string, object>> = {
  [packageName]: moduleOf(packageName, "dist/index.js", builders),
  ...Object.fromEntries(
    ["cpu", "cuda", "internals"].map((part) => {
      const name = `${packageName}/${part}`;
      return [name, moduleOf(name, `dist/${part}.js`, {})];
    }),
  ),
};

/** Names that module interop looks for in every module. */
const interopNames: ReadonlySet<string | symbol> = new Set(["__esModule", "default", "then", "module.exports"]);

/** A module whose missing exports are errors where they are used, as Node's own linking makes them. */
function moduleOf(name: string, file: string, ready: Exports): object {
  let loaded: Exports | null = null;
  const whole = (): Exports => (loaded ??= { ...exportsOf(file), ...ready });
  return new Proxy(ready, {
    get(_, key): unknown {
      if (typeof key !== "string" || interopNames.has(key)) return undefined;
      if (Object.hasOwn(ready, key)) return ready[key];
      const part = ready === builders ? parts.get(key) : undefined;
      const all = part === undefined ? whole() : exportsOf(part);
      if (Object.hasOwn(all, key)) return all[key];
      const help = suggestion(key, Object.keys(all), `it exports ${Object.keys(all).join(", ")}`);
      throw new SyntaxError(`"${name}" has no export named ${key}: ${help}`);
    },
    has: (_, key) => Object.hasOwn(ready, key) || Object.hasOwn(whole(), key),
    ownKeys: () => Reflect.ownKeys(whole()),
    getOwnPropertyDescriptor: (_, key) => Reflect.getOwnPropertyDescriptor(whole(), key),
  });
}

/** By `require`, because an access to an export cannot wait. */
function exportsOf(file: string): Exports {
  const module: unknown = require(fileURLToPath(packageFile(file)));
  return typeof module === "object" && module !== null ? { ...module } : {};
}
