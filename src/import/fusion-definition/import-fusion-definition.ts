/** nvFuser's FusionDefinition as text, printed by print(fd) or written in a program, to a Fusion. */
import { fail } from "../../diagnostics/diagnostic.ts";
import type { Fusion } from "../../ir/api/fusion.ts";
import type { ImportedModel, ImportOptions } from "../model.ts";
import { importedFusion, withSourceOrigins } from "../origins.ts";
import { functionScope, isDefinition, isFusionPath, runBlock, type Scope } from "./evaluate.ts";
import { type Expression, readPython, type PythonStatement } from "../python.ts";
import type { Definition } from "./value.ts";

type FunctionStatement = Extract<PythonStatement, { readonly kind: "def" }>;

/** Throws `model-syntax`, `model-unsupported`, `model-invalid`. */
export function importFusionDefinition(text: string, { file = "model", entry }: ImportOptions = {}): ImportedModel {
  const source = { file, text, firstLine: 1, prefixLength: 0, lines: null };
  const definition: Definition = {
    source,
    fusion: importedFusion(),
    positions: [],
    names: new Map(),
    padded: new Map(),
    statements: 0,
  };
  const statements = readPython(source);
  const scope: Scope = { values: new Map(), outer: null, depth: 0 };
  const main = mainOf(statements, entry, file);
  // What the file computes before it: numbers and functions.
  runBlock(
    definition,
    scope,
    statements.filter((each) => each.kind === "def" || (each.kind === "assign" && isConstant(each.value))),
  );
  if (main.kind === "def") runBlock(definition, functionScope(definition, scope, main, [], main.position), main.body);
  else runBlock(definition, scope, [main]);
  const { fusion, names } = definition;
  const nameOf = (id: number, usual: string): string => {
    const name = names.get(id) ?? "";
    return /^(?!T\d+$)[A-Za-z]\w{0,63}$/u.test(name) ? name : usual;
  };
  const inputs = fusion.inputs.map((tensor, i) => ({ tensor, name: nameOf(tensor.id, `in${i}`), place: `in${i}` }));
  const outputs = fusion.outputs.map((tensor, i) => ({ tensor, name: nameOf(tensor.id, `out${i}`) }));
  return {
    fusion: withSourceOrigins(
      definition,
      [...inputs, ...outputs].map(({ tensor, name }) => [tensor, name]),
    ),
    devices: devicesOfMeshes(fusion),
    inputs: inputs.map(({ name, place }) => ({ names: name === place ? [name] : [name, place], value: null })),
    outputs: outputs.map(({ name }) => name),
  };
}

/** As many as the meshes name; null without one. */
export function devicesOfMeshes(fusion: Fusion): number | null {
  const devices = fusion.data().tensors.flatMap(({ mesh }) => mesh?.devices ?? []);
  return devices.length === 0 ? null : devices.reduce((most, device) => Math.max(most, device), 0) + 1;
}

/** Assignments of a file that need no library. */
function isConstant(value: Expression): boolean {
  switch (value.kind) {
    case "number":
    case "text":
    case "name":
      return true;
    case "list":
      return value.items.every(isConstant);
    case "negative":
      return isConstant(value.of);
    case "binary":
      return isConstant(value.left) && isConstant(value.right);
    case "attribute":
    case "index":
    case "call":
      return false;
  }
}

/** The function or block of the file that makes a Fusion. Throws `model-invalid` unless there is one of the name. */
function mainOf(
  statements: readonly PythonStatement[],
  entry: string | undefined,
  file: string,
): FunctionStatement | Extract<PythonStatement, { readonly kind: "with" }> {
  const functions = statements.flatMap((each) => (each.kind === "def" ? [each] : []));
  if (entry === undefined) {
    const blocks = statements.filter(isBlock);
    const makers = functions.filter((each) => each.parameters.some(isDefinition) || each.body.some(isBlock));
    const [main, ...more] = blocks.length > 0 ? blocks : makers;
    if (main !== undefined && more.length === 0) return main;
  }
  const named = functions.find(({ name }) => name === entry);
  if (named !== undefined) return named;
  const names = functions.map(({ name }) => name).slice(0, 8);
  return fail({
    code: "model-invalid",
    message:
      entry === undefined ? "the file does not say which definition to read" : `the file has no function ${entry}`,
    place: { kind: "file", path: file, line: 1, column: 1 },
    found: names.length === 0 ? "no function with fd: FusionDefinition" : names.join(", "),
    expected: "one `def nvfuser_fusion(fd : FusionDefinition)`, or one `with FusionDefinition() as fd:`",
    help: names.length === 0 ? "print the definition with print(fd)" : "name a function with --entry",
  });
}

function isBlock(statement: PythonStatement): statement is Extract<PythonStatement, { readonly kind: "with" }> {
  if (statement.kind !== "with" || statement.value.kind !== "call") return false;
  const { callee } = statement.value;
  return callee.kind === "name" ? isFusionPath(callee.name) : callee.kind === "attribute" && isFusionPath(callee.name);
}
