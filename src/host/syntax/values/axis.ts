/** Axes in dump text: `iStreamIdx2{i0}`, `ideviceIdx.x1{8}`, `rS10{i4}`, `bS8{1}`. */
import type { IterDomain, IterDomainId, IterType, ParallelType, Tensor } from "../../../ir/domain.ts";
import { deviceIndices, didTypes } from "../../../ir/parallel-type.ts";
import { irSpellings } from "../../../ir/print-style.ts";
import { iterLetters } from "../../../ir/print-tensor.ts";
import { makeId } from "../../../support/ids.ts";
import { keysOf } from "../../../support/keys-of.ts";
import { domainsHelp } from "./domain-notes.ts";
import { parseScalar } from "./scalar.ts";
import { failAt } from "../text/source.ts";
import { expectNumber, failExpected, isDigit, peek, type Scanner, skipBlanks, take } from "../text/scanner.ts";

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

export function parseAxis(scanner: Scanner): IterDomain {
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

function parseIterType(scanner: Scanner): IterType {
  const letter = scanner.text[scanner.position] ?? "";
  const iterType = iterTypes.get(letter);
  if (iterType === undefined) {
    const foreign = foreignIterTypes.get(letter);
    if (foreign === undefined) failExpected(scanner, "an axis, which begins with i, r or b");
    failAt(scanner.source, scanner.position, {
      code: "dump-unsupported",
      message: `an axis has iteration type ${foreign}`,
      expected: "i (Iteration), r (Reduction) or b (Broadcast)",
      help: otherOp,
    });
  }
  scanner.position++;
  return iterType;
}

function parseParallelType(scanner: Scanner, start: number): ParallelType {
  const { text, position } = scanner;
  for (const [name, type] of parallelTypes) {
    if (!text.startsWith(name, position) || !isDigit(text.charCodeAt(position + name.length))) continue;
    scanner.position = position + name.length;
    return type;
  }
  const [foreign = ""] = /^[A-Za-z.]+/u.exec(text.slice(position, position + 40)) ?? [];
  if (foreign === "") failExpected(scanner, "a parallel type, such as S or deviceIdx.x");
  return failAt(scanner.source, start, {
    code: "dump-unsupported",
    message: `an axis has parallel type ${foreign}`,
    found: text.slice(start, position + foreign.length),
    expected: `S, streamIdx (StreamIdx, Stream) or ${Object.values(deviceIndices).join(", ")}`,
    help: "host programs have no axes on threads or blocks; pass the dump of a host program",
  });
}

/** nvFuser also has `{start : stop : extent}`, for axes that Braid does not have. */
function failExtent(scanner: Scanner): never {
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
  scanner: Scanner,
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
