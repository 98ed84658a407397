/** Axes in dump text: `iStreamIdx2{i0}`, `ideviceIdx.x1{8}`, `rS10{i4}`, `bS8{1}`. */
import {
  isDID,
  type IterDomain,
  type IterDomainId,
  type IterType,
  type ParallelType,
  type Tensor,
} from "../../../ir/domain.ts";
import { deviceIndices, didTypes } from "../../../ir/parallel-type.ts";
import { irSpellings } from "../../../ir/scalar/scalar.ts";
import { iterLetters } from "../../../ir/print-tensor.ts";
import { makeId, keysOf } from "../../../support/invariant.ts";
import { expectNumber, failExpected, isDigit, peek, type DumpScanner, skipBlanks, take } from "../text/scanner.ts";
import { failAt } from "../text/source.ts";
import { domainsHelp } from "./domain-notes.ts";
import { parseScalar } from "./scalar.ts";

const iterTypes: ReadonlyMap<string, IterType> = new Map(keysOf(iterLetters).map((type) => [iterLetters[type], type]));

/** nvFuser's iteration types that Braid's tensors do not have. */
const foreignIterTypes: ReadonlyMap<string, string> = new Map([
  ["s", "Stride"],
  ["n", "GatherScatter"],
  ["v", "VectorComponent"],
  ["?", "Symbolic"],
]);

/**
 * The names of all eras; drafts of early 2025 print `Stream`. A digit follows each, so a name never matches the start
 * of a longer one.
 */
const parallelTypes: readonly (readonly [text: string, type: ParallelType])[] = [
  ["S", "Serial"],
  ...[...new Set(Object.values(irSpellings).map(({ stream }) => stream)), "Stream"].map(
    (text) => [text, "Stream"] as const,
  ),
  ...didTypes.map((type) => [deviceIndices[type], type] as const),
];

const otherOp = "write the op that makes such an axis with ops of docs/ops.md";

export function parseAxis(scanner: DumpScanner): IterDomain {
  const start = scanner.position;
  const iterType = parseIterType(scanner);
  const parallelType = parseParallelType(scanner, start);
  const id = makeId<IterDomainId>(expectNumber(scanner, "the number of the axis"));
  if (!take(scanner, "{")) failExpected(scanner, '"{" and the extent');
  const whole = parseScalar(scanner);
  skipBlanks(scanner);
  // A stretched axis, `{1 ex 4}`, which Braid has as one of its whole extent.
  const isExpanded = take(scanner, "ex ");
  const extent = isExpanded ? parseScalar(scanner) : whole;
  if (!take(scanner, "}")) failExtent(scanner);
  // The origin of the axis, which does not matter here: a reshape (rf), padding (_p), clustering (_c).
  while (take(scanner, "rf") || take(scanner, "_p") || take(scanner, "_c"));
  return { id, extent, iterType: isExpanded ? "iteration" : iterType, parallelType };
}

function parseIterType(scanner: DumpScanner): IterType {
  const letter = scanner.text[scanner.position] ?? "";
  const iterType = iterTypes.get(letter);
  if (iterType === undefined) {
    const foreign = foreignIterTypes.get(letter);
    if (foreign === undefined) failExpected(scanner, "an axis, which begins with i, r or b");
    failAt(scanner.source, scanner.position, "dump-unsupported", `an axis has iteration type ${foreign}`, {
      expected: "i (Iteration), r (Reduction) or b (Broadcast)",
      help: otherOp,
    });
  }
  scanner.position++;
  return iterType;
}

function parseParallelType(scanner: DumpScanner, start: number): ParallelType {
  const { text, position } = scanner;
  for (const [name, type] of parallelTypes) {
    if (!text.startsWith(name, position) || !isDigit(text.charCodeAt(position + name.length))) continue;
    scanner.position = position + name.length;
    return type;
  }
  const [foreign = ""] = /^[A-Za-z.]+/u.exec(text.slice(position, position + 40)) ?? [];
  if (foreign === "") failExpected(scanner, "a parallel type, such as S or deviceIdx.x");
  return failAt(scanner.source, start, "dump-unsupported", `an axis has parallel type ${foreign}`, {
    found: text.slice(start, position + foreign.length),
    expected: `S, streamIdx (StreamIdx, Stream) or ${Object.values(deviceIndices).join(", ")}`,
    help: "Braid has no axes on threads or blocks; pass the dump of a host program, or a Fusion before it is scheduled",
  });
}

/** nvFuser also has `{start : stop : extent}`, for axes that Braid does not have. */
function failExtent(scanner: DumpScanner): never {
  if (peek(scanner) !== 58) failExpected(scanner, '"}" after the extent');
  return failAt(scanner.source, scanner.position, {
    code: "dump-unsupported",
    message: "an axis does not start at 0 or does not end at its extent",
    expected: "the extent alone",
    help: otherOp,
  });
}

/** The position of the printed axis among `axes`, which are the tensor's. */
export function axisPosition(
  scanner: DumpScanner,
  start: number,
  tensor: Tensor,
  id: IterDomainId,
  axes: readonly IterDomain[],
): number {
  const position = axes.findIndex((axis) => axis.id === id);
  if (position >= 0) return position;
  return failAt(scanner.source, start, {
    code: "dump-incomplete",
    message: `T${tensor.id} is sliced along an axis that it does not print`,
    found: `axis number ${id}`,
    expected: `one of the axes ${axes.map((axis) => axis.id).join(", ")}, or a logical domain under "TransformPrinter :"`,
    help: `correct the number of the axis; if the tensor's axes were split, ${domainsHelp}`,
  });
}

// The order of a tensor's axes. Dumps print the loop domain, in which nvFuser moves the axes of devices to the front:
//
//   T0_g_float[ideviceIdx.x1{i2}, iS0{i0}, iS2{i3}]     logical domain: iS0, ideviceIdx.x1, iS2
//
// Axes are numbered in the logical order, so their numbers tell it. Those of a permuted tensor are numbered in its
// operand's order; it prints its logical order as long as no axis of devices stands first.

/** The printed axes in logical order; null where several orders print alike. */
export function logicalOrder(printed: readonly IterDomain[]): readonly IterDomain[] | null {
  if (isNumbered(printed)) return printed;
  const moved = leadingParallel(printed);
  if (moved === 0) return printed;
  return isNumbered(printed.slice(moved)) ? printed.toSorted((a, b) => a.id - b.id) : null;
}

/** Whether the printed axes of a tensor show its logical ones: nothing was split, and the order can be told. */
export function showsLogicalOrder({ domain: { logical, loop, transforms } }: Tensor): boolean {
  const shown = transforms.length === 0 ? logicalOrder(loop) : null;
  return shown !== null && logical.length === shown.length && logical.every((axis, i) => axis.id === shown[i]?.id);
}

/** The tensor with the axes of devices first in its text, unless that would hide its logical order. */
export function devicesFirst(tensor: Tensor): Tensor {
  const { domain } = tensor;
  const loop = [
    ...domain.loop.filter(({ parallelType }) => isDID(parallelType)),
    ...domain.loop.filter(({ parallelType }) => !isDID(parallelType)),
  ];
  const reordered: Tensor = { ...tensor, domain: { ...domain, loop } };
  return showsLogicalOrder(reordered) ? reordered : tensor;
}

/** How many axes of devices and streams stand in front of all others. */
export function leadingParallel(axes: readonly IterDomain[]): number {
  const first = axes.findIndex(({ parallelType }) => parallelType === "Serial");
  return first < 0 ? axes.length : first;
}

function isNumbered(axes: readonly IterDomain[]): boolean {
  return axes.every(({ id }, i) => i === 0 || id > (axes[i - 1]?.id ?? -1));
}
