/**
 * Prints host programs and Fusions in nvFuser's dump format. A style is named after the month of the dumps that it
 * reproduces. It changes spelling and which sections print, never the meaning.
 */
import type { Tensor, TensorId } from "../../ir/domain.ts";
import { namedIn } from "../../ir/origin.ts";
import type { FusionData } from "../../ir/fusion-data.ts";
import { type DumpStyle, defaultDumpStyle, irSpellings } from "../../ir/print-style.ts";
import type { HostProgram, HostUnit, Statement } from "../nodes.ts";
import { plainContext, type PrintContext } from "../syntax/context.ts";
import { printTensorOf } from "../syntax/statements/fields.ts";
import { containerEnd, containerTitle, kernelEnd, kernelTitle } from "../syntax/sections.ts";
import { indentation } from "../syntax/statements/statements.ts";
import { printOp } from "../syntax/ops/ops.ts";
import { type IndexDefinitions, indexDefinitionsOf } from "./index-definitions.ts";
import { printScope } from "./statement.ts";
import { transformLines } from "../syntax/transforms.ts";
import { accessesOf, isOp, walk } from "../traverse.ts";
import { at } from "../../support/invariant.ts";

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
      const { reads, writes } = accessesOf(statement);
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
