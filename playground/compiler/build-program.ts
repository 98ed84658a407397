/** Evaluates the user's program and builds it for each variant. Runs in a worker that is then ended. */
import { transform } from "sucrase";
import * as braid from "../../src/index.ts";
import type { BuiltData } from "../../src/compile/program/revive.ts";
import { requireKnownParameters } from "../../src/compile/program/known-parameters.ts";
import { parameterValues } from "../../src/compile/options/kinds.ts";
import { DiagnosticError, fail } from "../../src/diagnostics/diagnostic.ts";
import { type HostProgram, isHostProgram } from "../../src/host/nodes.ts";
import { isProgramFile, packageName, type ParameterValue, type ProgramFile } from "../../src/host/program-file.ts";
import { suggestion } from "../../src/support/wording.ts";
import { isDType } from "../../src/numerics/dtype.ts";
import type { BuildAnswer, BuildRequest, BuiltVariant, Variant } from "./messages.ts";
import { programFile, syntaxDiagnostic, userDiagnostics } from "./user-errors.ts";

/** `evaluate` runs JavaScript in the global scope: `eval`, called indirectly. */
export function buildProgram({ text, variants }: BuildRequest, evaluate: (code: string) => unknown): BuildAnswer {
  try {
    const program = load(compiled(text), evaluate);
    return {
      kind: "built",
      variants: variants.map((each) => (variants.length === 1 ? built(program, each) : builtOrNull(program, each))),
    };
  } catch (error) {
    if (error instanceof Error && error.name === "InvariantError") {
      return { kind: "failed", stack: error.stack ?? error.message };
    }
    return { kind: "refused", diagnostics: userDiagnostics(error) };
  }
}

/** JavaScript with the lines of the TypeScript. */
function compiled(text: string): string {
  try {
    // Browsers that run the page know all of ES2022.
    const target = { production: true, disableESTransforms: true };
    return transform(text, { transforms: ["typescript", "imports"], filePath: programFile, ...target }).code;
  } catch (error) {
    throw new DiagnosticError([syntaxDiagnostic(error)]);
  }
}

function load(code: string, evaluate: (code: string) => unknown): ProgramFile {
  const module: unknown = evaluate(`(function (require, exports) {${code}\n})\n//# sourceURL=${programFile}`);
  const exports: { default?: unknown } = {};
  if (typeof module === "function") Reflect.apply(module, undefined, [requireModule, exports]);
  if (isProgramFile(exports.default)) return exports.default;
  return fail({
    code: "program-invalid",
    message:
      exports.default === undefined
        ? "the program has no default export"
        : "the default export of the program is not a program",
    place: { kind: "file", path: programFile },
    found: exports.default === undefined ? "no default export" : typeof exports.default,
    expected: "export default program({ ...parameters }, ({ devices, params }) => { ...; return fusion; })",
    help: "wrap the code that makes the Fusion in program(...) and export it as default",
  });
}

function requireModule(name: string): object {
  if (name === packageName) return exported;
  return fail({
    code: "program-invalid",
    message: "the program imports a module that the playground does not have",
    place: { kind: "file", path: programFile },
    found: `import from "${name}"`,
    expected: `imports from "${packageName}"`,
    help: "remove the import, or run the program with the braid command",
  });
}

/** Braid, which refuses names that it does not export: sucrase reads each where it is used, and calls what it got. */
const exported: object = new Proxy(braid, {
  get: (target, name): unknown => {
    if (typeof name === "symbol" || name === "__esModule" || name in target) return Reflect.get(target, name);
    return fail({
      code: "program-invalid",
      message: `"${packageName}" does not export ${name}`,
      place: { kind: "file", path: programFile },
      found: name,
      expected: "a name of the API",
      help: suggestion(name, Object.keys(target), "look it up in the API reference"),
    });
  },
});

function built(program: ProgramFile, { devices, hosts, params: texts }: Variant): BuiltVariant {
  const { defaults } = program;
  // The page may still have values for the program that was there before.
  const params = read(Object.fromEntries(Object.entries(texts).filter(([name]) => Object.hasOwn(defaults, name))));
  requireKnownParameters("the program", defaults, new Map(Object.entries(params)));
  return { data: dataOf(program, { devices, hosts, params }), params: { ...defaults, ...params } };
}

function builtOrNull(program: ProgramFile, variant: Variant): BuiltVariant | null {
  try {
    return built(program, variant);
  } catch (error) {
    if (error instanceof Error && error.name === "InvariantError") throw error;
    return null;
  }
}

type Request = Parameters<ProgramFile["build"]>[0] & { readonly devices: number };

function dataOf(program: ProgramFile, request: Request): BuiltData {
  const { defaults } = program;
  const first = program.build(request);
  if (!isHostProgram(first)) return { source: first.data(), reference: null, defaults };
  const rest = Array.from({ length: request.devices - 1 }, (_, i) => hostOf(program, request, i + 1));
  const reference = program.reference?.(request).data() ?? null;
  return { source: [first, ...rest], reference, defaults };
}

function hostOf(program: ProgramFile, request: Request, rank: number): HostProgram {
  const host = program.build({ ...request, rank });
  if (isHostProgram(host)) return host;
  return fail({
    code: "program-invalid",
    message: "the program returns a HostProgram for some ranks and a Fusion for others",
    place: { kind: "call", text: `program.build({ rank: ${rank} })` },
    found: "a Fusion",
    expected: "a HostProgram for every rank",
    help: "return the same kind of program for all ranks",
  });
}

function read(texts: Readonly<Record<string, string>>): Record<string, ParameterValue> {
  return Object.fromEntries(
    Object.entries(texts).map(([name, text]) => [name, numberOrDType(name, parameterValues.parse(text), text)]),
  );
}

function numberOrDType(name: string, value: unknown, text: string): ParameterValue {
  if (typeof value === "number" && Number.isFinite(value)) return value;
  if (isDType(value)) return value;
  return fail({
    code: "option-value",
    message: `parameter ${name} is neither a number nor a dtype`,
    place: { kind: "option", text: `--set ${name}=${text}` },
    found: text === "" ? "nothing" : text,
    expected: parameterValues.expected,
    help: `write it like --set ${name}=64`,
  });
}
