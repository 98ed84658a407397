/**
 * The section of a dump with what the axes of a tensor do not show, in the form of nvFuser's transform printer: a
 * logical domain that was split or merged, an order in memory, and the root domain of a permuted tensor whose axis
 * numbers do not give the order in which it read its operand.
 *
 *   TransformPrinter :
 *   T0_g_float[ideviceIdx.x2{2}, iS3{4}] (DeviceMesh{0 1})
 *    logical domain : (iS0{8})
 *    contiguity: t
 *     Outer split: iS0{8} by factor 2 -> ideviceIdx.x2{2}, iS3{4}
 *    loop domain : (ideviceIdx.x2{2}, iS3{4})
 */
import {
  type IterDomain,
  type IterDomainId,
  type Tensor,
  type TensorId,
  type Transform,
  withoutReductions,
} from "../../ir/domain.ts";
import type { PermuteOp } from "../../ir/ops/op.ts";
import { type IrSpelling, constant } from "../../ir/scalar/scalar.ts";
import { printIterDomain, printTensor } from "../../ir/print-tensor.ts";
import { foldCeilDiv, foldMul } from "../../ir/scalar/fold.ts";
import { at, invariant, keysOf } from "../../support/invariant.ts";
import type { Statement } from "../nodes.ts";
import { statementAccess } from "../traverse.ts";
import {
  expect,
  expectNumber,
  failExpected,
  isDigit,
  type DumpScanner,
  skipBlanks,
  skipLine,
  skipSpace,
  take,
} from "./text/scanner.ts";
import { failAt, transformsTitle } from "./text/source.ts";
import { leadingParallel, parseAxis, showsLogicalOrder } from "./values/axis.ts";
import { type DomainNote, type DomainNotes, rounds } from "./values/domain-notes.ts";

/** The titles of transforms, with the signs between their values: axes, but for the one after `by factor`. */
const factorSign = "by factor";
const signsOf = {
  "Split:": [factorSign, "->", ","],
  "Outer split:": [factorSign, "->", ","],
  "Merge:": ["and", "->"],
} as const;

/** The section's lines, tensors in the order of their numbers; none if the axes show everything. */
export function transformLines(
  tensors: readonly Tensor[],
  arguments_: readonly TensorId[],
  statements: readonly Statement[],
  spelling: IrSpelling,
): readonly string[] {
  const mentioned = new Set(arguments_);
  const roots = new Map<TensorId, readonly IterDomain[]>();
  for (const statement of statements) {
    const { reads, writes } = statementAccess(statement);
    for (const id of [...reads, ...writes]) mentioned.add(id);
    if (statement.kind === "Permute") addRoot(roots, statement, tensors);
  }
  const lines = [...mentioned]
    .sort((a, b) => a - b)
    .flatMap((id) => tensorLines(at(tensors, id), roots.get(id) ?? null, spelling));
  return lines.length === 0 ? [] : [transformsTitle, ...lines];
}

/**
 * Notes the root of a permuted tensor unless its axes show it: they are numbered in the order of the operand's, as they
 * usually are, and none of devices stands first.
 */
function addRoot(
  roots: Map<TensorId, readonly IterDomain[]>,
  { order, output }: PermuteOp,
  tensors: readonly Tensor[],
): void {
  const { logical, loop } = at(tensors, output).domain;
  const axes = withoutReductions(logical);
  const root = axes.map((_, position) => at(axes, order.indexOf(position)));
  const isShown = leadingParallel(loop) === 0 || axes.length === 1;
  if (!isShown || root.some(({ id }, i) => i > 0 && id < at(root, i - 1).id)) roots.set(output, root);
}

function tensorLines(tensor: Tensor, root: readonly IterDomain[] | null, spelling: IrSpelling): readonly string[] {
  const { logical, loop, allocation, transforms } = tensor.domain;
  // Without the logical domain, an extent that rounds up would read as a part of an axis.
  const isPlain = allocation === null && showsLogicalOrder(tensor) && !loop.some(({ extent }) => rounds(extent));
  if (isPlain && root === null) return [];
  const axes = axesById(tensor);
  const domain = (title: string, own: readonly IterDomain[] | null): readonly string[] =>
    own === null ? [] : [` ${title} domain : (${own.map((axis) => printIterDomain(axis, spelling)).join(", ")})`];
  const line = (transform: Transform): string => {
    const [title, values] = transformValues(transform);
    const texts = values.map((value, i) => {
      const sign = i === 0 ? "" : at(signsOf[title], i - 1);
      const text = sign === factorSign ? String(value) : printIterDomain(axisOf(axes, value), spelling);
      return `${sign === "," ? "" : " "}${sign}${i === 0 ? "" : " "}${text}`;
    });
    return `  ${title}${texts.join("")}`;
  };
  return [
    printTensor(tensor, spelling),
    ...domain("root", root),
    ...domain("logical", logical),
    ...domain("allocation", allocation),
    ` contiguity: ${(allocation ?? logical).map(({ iterType }) => (iterType === "iteration" ? "t" : "n")).join(" ")}`,
    ...transforms.map(line),
    ...domain("loop", loop),
  ];
}

function transformValues(transform: Transform): readonly [keyof typeof signsOf, readonly number[]] {
  if (transform.kind === "merge") return ["Merge:", [transform.outer, transform.inner, transform.output]];
  const { input, factor, outer, inner, innerSplit } = transform;
  return [innerSplit ? "Split:" : "Outer split:", [input, factor, outer, inner]];
}

/** All axes of a tensor, including those that one transform made and a later one consumed. */
function axesById({ domain: { logical, loop, transforms } }: Tensor): ReadonlyMap<number, IterDomain> {
  const axes = new Map<number, IterDomain>([...logical, ...loop].map((axis) => [axis.id, axis]));
  const derive = (id: IterDomainId, from: IterDomain, extent: IterDomain["extent"]): void => {
    if (!axes.has(id)) axes.set(id, { id, extent, iterType: from.iterType, parallelType: "Serial" });
  };
  for (const transform of transforms) {
    if (transform.kind === "merge") {
      const outer = axisOf(axes, transform.outer);
      derive(transform.output, outer, foldMul(outer.extent, axisOf(axes, transform.inner).extent));
      continue;
    }
    const input = axisOf(axes, transform.input);
    const factor = constant(transform.factor);
    const rest = foldCeilDiv(input.extent, factor);
    derive(transform.outer, input, transform.innerSplit ? rest : factor);
    derive(transform.inner, input, transform.innerSplit ? factor : rest);
  }
  return axes;
}

function axisOf(axes: ReadonlyMap<number, IterDomain>, id: number): IterDomain {
  const axis = axes.get(id);
  invariant(axis !== undefined, "a transform takes axes that exist", { id });
  return axis;
}

const titlesOfDomains: readonly string[] = ["root domain", "logical domain", "allocation domain", "loop domain"];
const notesOfDomains: readonly string[] = [...titlesOfDomains, "contiguity:", ...keysOf(signsOf)];

/** Reads the section after its title. The scanner stops at the first line that does not describe a tensor. */
export function parseTransforms(scanner: DumpScanner): DomainNotes {
  const notes = new Map<number, DomainNote>();
  for (;;) {
    skipSpace(scanner);
    if (notesOfDomains.some((note) => scanner.text.startsWith(note, scanner.position)))
      failExpected(scanner, "the tensor that this line describes");
    if (!scanner.text.startsWith("T", scanner.position)) return notes;
    if (!isDigit(scanner.text.charCodeAt(scanner.position + 1))) return notes;
    scanner.position++;
    const number = expectNumber(scanner, "the number of a tensor");
    skipLine(scanner);
    notes.set(number, parseNote(scanner));
  }
}

function parseNote(scanner: DumpScanner): DomainNote {
  let root: readonly IterDomainId[] | null = null;
  let logical: readonly IterDomain[] | null = null;
  let allocation: readonly IterDomain[] | null = null;
  const transforms: Transform[] = [];
  for (;;) {
    skipSpace(scanner);
    if (take(scanner, "root domain")) root = parseDomain(scanner).map(({ id }) => id);
    else if (take(scanner, "logical domain")) logical = parseDomain(scanner);
    else if (take(scanner, "allocation domain")) allocation = parseDomain(scanner);
    else if (take(scanner, "contiguity:")) skipLine(scanner);
    else if (take(scanner, "loop domain")) {
      skipLine(scanner);
      if (logical === null) failExpected(scanner, 'the line "logical domain : (...)" before this one');
      return { root, logical, allocation, transforms };
    } else if (logical === null && root !== null) {
      // Skips the transforms from a reshape's root: only the logical axes matter.
      if (!/\S/u.test(scanner.text.slice(scanner.position, scanner.position + 1))) failExpected(scanner, "a domain");
      skipLine(scanner);
    } else transforms.push(parseTransform(scanner));
  }
}

/** ` : (iS0{8}, iS1{4})` */
function parseDomain(scanner: DumpScanner): readonly IterDomain[] {
  expect(scanner, ":");
  expect(scanner, "(");
  const axes: IterDomain[] = [];
  if (take(scanner, ")")) return axes;
  for (;;) {
    axes.push(parseAxis(scanner));
    skipBlanks(scanner);
    if (take(scanner, ")")) return axes;
    expect(scanner, ",");
  }
}

function parseTransform(scanner: DumpScanner): Transform {
  const titles = keysOf(signsOf);
  const title = titles.find((each) => take(scanner, each));
  if (title === undefined) {
    failAt(scanner.source, scanner.position, "dump-unsupported", "a domain was not made by splits and merges alone", {
      expected: `${titles.map((each) => `"${each}"`).join(", ")} or a domain`,
      help: "Braid splits and merges axes; make the tensor without other transforms",
    });
  }
  let factor = 1;
  skipBlanks(scanner);
  const axes = [parseAxis(scanner).id];
  for (const sign of signsOf[title]) {
    expect(scanner, sign);
    if (sign === factorSign) factor = parseFactor(scanner);
    else axes.push(parseAxis(scanner).id);
  }
  const [first, second, third] = [at(axes, 0), at(axes, 1), at(axes, 2)];
  if (title === "Merge:") return { kind: "merge", outer: first, inner: second, output: third };
  return { kind: "split", input: first, outer: second, inner: third, factor, innerSplit: title === "Split:" };
}

function parseFactor(scanner: DumpScanner): number {
  const start = scanner.position;
  const factor = expectNumber(scanner, "a constant factor");
  return factor === 0 ? failExpected(scanner, "a factor of at least 1", start) : factor;
}
