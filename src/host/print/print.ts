/**
 * Prints host programs and Fusions in nvFuser's dump format. A style is named after the month of the dumps that it
 * reproduces. It changes spelling and which sections print, never the meaning.
 */
import type { Tensor, TensorId } from "../../ir/domain.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { namedIn } from "../../ir/origin.ts";
import {
  defaultDumpStyle,
  type DumpStyle,
  type IrSpelling,
  irSpellings,
  printOperation,
  printScalar,
  type Scalar,
} from "../../ir/scalar/scalar.ts";
import { at } from "../../support/invariant.ts";
import type { HostProgram, HostUnit, Statement } from "../nodes.ts";
import { plainContext, type PrintContext } from "../syntax/context.ts";
import { printOp } from "../syntax/ops/ops.ts";
import { printTensorOf } from "../syntax/statements/fields.ts";
import { elseWord, indentation, statementRowOf } from "../syntax/statements/statements.ts";
import { containerEnd, containerTitle, definitionsTitle, kernelEnd, kernelTitle } from "../syntax/text/source.ts";
import { transformLines } from "../syntax/transforms.ts";
import { statementAccess, isOp, walk } from "../traverse.ts";

export interface PrintOptions {
  /** "2025-10" if not given. */
  readonly style?: DumpStyle;
  /** Whether the definitions of named index values follow. Default: in style 2025-10, as in nvFuser. */
  readonly indexDefinitions?: boolean;
  /**
   * Whether domains beyond the printed axes follow, in the form of nvFuser's transform printer. Default: in style
   * 2025-10. With both sections, `parse` reads back the same program.
   */
  readonly transforms?: boolean;
}

/** The dump of a host program, which `parse` reads. It begins and ends with an empty line. */
export function print(
  program: HostProgram,
  {
    style = defaultDumpStyle,
    indexDefinitions = style >= "2025-10",
    transforms = style >= "2025-10",
  }: PrintOptions = {},
): string {
  const definitions = indexDefinitions ? indexDefinitionsOf(program, irSpellings[style]) : null;
  const context = contextOf(program, style, definitions);
  const inputs = program.inputs.map((id) => printTensorOf(id, context)).join(", ");
  const outputs = program.outputs.map((id) => printTensorOf(id, context)).join(", ");
  const container = [
    `${containerTitle} (${inputs}) -> (${outputs}) :`,
    ...printScope(program.body, context, indentation),
    ...program.units.flatMap((unit) => printUnit(unit, context, transforms)),
    containerEnd,
    "",
  ];
  const lines = ["", ...nameLines(container, program.tensors), ...container];
  if (definitions !== null && definitions.lines.length > 0) lines.push(...definitions.lines, "");
  const { tensors, inputs: from, outputs: to } = program;
  const domains = transforms ? transformLines(tensors, [...from, ...to], walk(program.body), context.spelling) : [];
  if (domains.length > 0) lines.push(...domains, "");
  return lines.join("\n");
}

/** A Fusion in the form of nvFuser's kernels: inputs, outputs, ops. */
export function printFusion(
  fusion: FusionData,
  { style = defaultDumpStyle }: Pick<PrintOptions, "style"> = {},
): string {
  const context = plainContext({ tensors: fusion.tensors, streams: [] }, style);
  const lines = [...signature(fusion, context), ...kernelLines(fusion, context), ""];
  return [...nameLines(lines, fusion.tensors), ...lines].join("\n");
}

/** A Fusion or host program as text: `printFusion` or `print`, for the result of a pass at any stage. */
export function printProgramOfStage(program: FusionData | HostProgram, options: PrintOptions = {}): string {
  return program.kind === "Fusion" ? printFusion(program, options) : print(program, options);
}

/** `// T3 hidden`: a comment for each named tensor in the lines. Without names, dumps are nvFuser's. */
function nameLines(lines: readonly string[], tensors: readonly Tensor[]): readonly string[] {
  return namedIn(lines, tensors).map(({ tensor, name }) => `// ${tensor} ${name}`);
}

function contextOf(program: HostProgram, style: DumpStyle, definitions: IndexDefinitions | null): PrintContext {
  const slices = walk(program.body).flatMap((each) => (each.kind === "HirAliasSelect" ? [each.output] : []));
  const plain = plainContext(program, style);
  const { indexText } = plain;
  return {
    ...plain,
    indexText: (value) => definitions?.names.get(value) ?? indexText(value),
    withoutMesh: new Set(style === "2025-04" ? slices : []),
    devicesFirst: style === "2025-05" ? computedTensors(program.body) : new Set(),
  };
}

/**
 * The tensors that ops and host units read and write; for a slice, the tensor that it views. Slices come later than
 * nvFuser's pass that moves axes, and so does the copy that stands in a branch for a rank's own communication.
 */
function computedTensors(body: readonly Statement[]): ReadonlySet<TensorId> {
  const viewed = new Map<TensorId, TensorId>();
  const computed = new Set<TensorId>();
  const visit = (scope: readonly Statement[]): void => {
    for (const statement of scope) {
      const { reads, writes } = statementAccess(statement);
      if (statement.kind === "HirAliasSelect" || statement.kind === "Select") {
        for (const id of reads) viewed.set(at(writes, 0), id);
      } else if (isOp(statement) || statement.kind === "PostOnStream") {
        for (const id of [...reads, ...writes]) computed.add(viewed.get(id) ?? id);
      } else if (statement.kind === "ForLoop") visit(statement.body);
    }
  };
  visit(body);
  return computed;
}

/** A unit's Fusion has separate tensors. */
function printUnit(
  { id, fusion, opaque }: HostUnit,
  { style, devicesFirst }: PrintContext,
  transforms: boolean,
): readonly string[] {
  const { tensors, inputs, outputs, ops } = fusion;
  const context: PrintContext = {
    ...plainContext({ tensors, streams: [] }, style),
    devicesFirst: new Set(devicesFirst.size > 0 ? tensors.map((tensor) => tensor.id) : []),
  };
  const list = (ids: typeof fusion.inputs): string =>
    ids.map((tensor) => `${printTensorOf(tensor, context)}, `).join("");
  const [first, ...rest] = signature(fusion, context);
  const title = `HostUnit${id}: Inputs={${list(fusion.inputs)}} -> Outputs={${list(fusion.outputs)}}${first ?? ""}`;
  const domains = transforms ? transformLines(tensors, [...inputs, ...outputs], ops, context.spelling) : [];
  const kernel = opaque === undefined ? kernelLines(fusion, context, domains) : kernelAround(opaque.lines);
  return ["", title, ...rest, ...kernel];
}

function signature(fusion: FusionData, context: PrintContext): readonly string[] {
  const lines = (ids: typeof fusion.inputs): string[] => ids.map((tensor) => `  ${printTensorOf(tensor, context)}`);
  return ["Inputs:", ...lines(fusion.inputs), "Outputs:", ...lines(fusion.outputs)];
}

function kernelLines(fusion: FusionData, context: PrintContext, domains: readonly string[] = []): readonly string[] {
  const ops = fusion.ops.map((op) => printOp(op, context, ""));
  return kernelAround([...ops, ...(domains.length > 0 ? ["", ...domains] : [])]);
}

function kernelAround(lines: readonly string[]): readonly string[] {
  return ["", kernelTitle, ...lines, kernelEnd];
}

// The section of a dump that says what its index values are. Slice indices and peers print by name; a value without a
// name gets the next free one, and equal values share it:
//
//   Index definitions:
//     i82 = rank + streamIdx;
//     i84 = i82 % 8;

interface IndexDefinitions {
  /** The names of values that the program leaves without one. */
  readonly names: ReadonlyMap<Scalar, string>;
  /** The section's lines; none if no value has a name. */
  readonly lines: readonly string[];
}

function indexDefinitionsOf({ body, scalarCount }: HostProgram, spelling: IrSpelling): IndexDefinitions {
  const names = new Map<Scalar, string>();
  const definitions = new Map<string, string>();
  const byText = new Map<string, string>();
  let count = scalarCount;
  const nameOf = (scalar: Scalar): string => {
    if (scalar.kind !== "binary") return printScalar(scalar, spelling);
    const text = printOperation(scalar, nameOf);
    const name = scalar.name ?? byText.get(text) ?? `i${count++}`;
    if (scalar.name === undefined) {
      names.set(scalar, name);
      byText.set(text, name);
    }
    definitions.set(name, text);
    return name;
  };
  for (const statement of walk(body)) indicesOf(statement).forEach(nameOf);
  const number = (name: string): number => Number(name.replace(/^\D+/u, ""));
  const sorted = [...definitions].sort(([a], [b]) => number(a) - number(b));
  const lines = sorted.map(([name, text]) => `  ${name} = ${text};`);
  return { names, lines: lines.length === 0 ? [] : [definitionsTitle, ...lines] };
}

/** The values of a statement that print by name. */
function indicesOf(statement: Statement): readonly Scalar[] {
  switch (statement.kind) {
    case "HirAliasSelect":
    case "Select":
      return [statement.index];
    case "P2PCommunication":
      return [statement.peer];
    case "Communication":
      return statement.root === null ? [] : [statement.root];
    case "ShareMemHandles":
      return statement.communications.map(({ peer }) => peer);
    default:
      return [];
  }
}

// Statements in dump text, with their bodies or as single lines.

/** The lines of statements, including their bodies. */
function printScope(body: readonly Statement[], context: PrintContext, indent: string): readonly string[] {
  const lines: string[] = [];
  addScope(lines, body, context, indent);
  return lines;
}

function addScope(lines: string[], body: readonly Statement[], context: PrintContext, indent: string): void {
  for (const statement of body) {
    lines.push(printHeader(statement, context, indent));
    if (statement.kind === "ForLoop") addScope(lines, statement.body, context, indent + indentation);
    if (statement.kind !== "IfThenElse") continue;
    addScope(lines, statement.then, context, indent + indentation);
    if (statement.else.length === 0) continue;
    lines.push(`${indent}${elseWord}:`);
    addScope(lines, statement.else, context, indent + indentation);
  }
}

/** The text of a statement without its bodies; computations and slices take several lines. */
function printHeader(statement: Statement, context: PrintContext, indent: string): string {
  return isOp(statement)
    ? printOp(statement, context, indent)
    : statementRowOf(statement.kind).print(statement, context, indent);
}

/**
 * A printer for the statements of one program, for diagnostics and the origins of commands: on one line, in style
 * 2025-10, index values in full, and for a loop or branch only the first line. The ids in the statements must be valid.
 */
export function createStatementText(
  program: Pick<HostProgram, "tensors" | "streams">,
): (statement: Statement) => string {
  const context: PrintContext = {
    ...plainContext(program, defaultDumpStyle),
    indexText: (value) => printScalar(value),
  };
  return (statement) => {
    const text = printHeader(statement, context, "");
    return text.includes("\n") ? text.replaceAll(/\s*\n\s*/gu, " ") : text;
  };
}
