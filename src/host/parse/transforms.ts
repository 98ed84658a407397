/**
 * The section of a dump that describes domains which are more than the printed axes, in the form of nvFuser's transform
 * printer (print/transforms.ts prints it):
 *
 *   TransformPrinter :
 *   T0_g_float[ideviceIdx.x2{2}, iS3{4}] (DeviceMesh{0 1})
 *    logical domain : (iS0{8})
 *    contiguity: t
 *     Outer split: iS0{8} by factor 2 -> ideviceIdx.x2{2}, iS3{4}
 *    loop domain : (ideviceIdx.x2{2}, iS3{4})
 *
 * A `root domain` before the logical one has the order in which a Permute read its operand.
 */
import type { IterDomain, IterDomainId, Transform } from "../../ir/domain.ts";
import type { DomainNote, DomainNotes } from "../syntax/values/domain-notes.ts";
import { parseAxis } from "../syntax/values/axis.ts";
import { failAt } from "../syntax/text/source.ts";
import {
  expect,
  expectNumber,
  failExpected,
  isDigit,
  type Scanner,
  skipBlanks,
  skipLine,
  skipSpace,
  take,
} from "../syntax/text/scanner.ts";

/** Reads the section after its title. The scanner stops at the first line that does not describe a tensor. */
export function parseTransforms(scanner: Scanner): DomainNotes {
  const notes = new Map<number, DomainNote>();
  for (;;) {
    skipSpace(scanner);
    if (!scanner.text.startsWith("T", scanner.position)) return notes;
    if (!isDigit(scanner.text.charCodeAt(scanner.position + 1))) return notes;
    scanner.position++;
    const number = expectNumber(scanner, "the number of a tensor");
    skipLine(scanner);
    notes.set(number, parseNote(scanner));
  }
}

function parseNote(scanner: Scanner): DomainNote {
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
      // Skips how a reshape came from its root: only the logical axes matter.
      if (!/\S/u.test(scanner.text.slice(scanner.position, scanner.position + 1))) failExpected(scanner, "a domain");
      skipLine(scanner);
    } else transforms.push(parseTransform(scanner));
  }
}

/** ` : (iS0{8}, iS1{4})` */
function parseDomain(scanner: Scanner): readonly IterDomain[] {
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

function parseTransform(scanner: Scanner): Transform {
  const start = scanner.position;
  if (take(scanner, "Merge:")) {
    skipBlanks(scanner);
    const outer = parseAxis(scanner).id;
    expect(scanner, "and");
    const inner = parseAxis(scanner).id;
    expect(scanner, "->");
    return { kind: "merge", outer, inner, output: parseAxis(scanner).id };
  }
  const outerSplit = take(scanner, "Outer split:");
  if (!outerSplit && !take(scanner, "Split:")) {
    failAt(scanner.source, start, {
      code: "dump-unsupported",
      message: "a domain has transforms other than splits and merges",
      expected: '"Split:", "Outer split:", "Merge:" or a domain',
      help: "Braid splits and merges axes; make the tensor without other transforms",
    });
  }
  skipBlanks(scanner);
  const input = parseAxis(scanner).id;
  expect(scanner, "by factor");
  const factorStart = scanner.position;
  const factor = expectNumber(scanner, "a constant factor");
  if (factor === 0) failExpected(scanner, "a factor of at least 1", factorStart);
  expect(scanner, "->");
  const outer = parseAxis(scanner).id;
  expect(scanner, ",");
  const inner = parseAxis(scanner).id;
  return { kind: "split", input, outer, inner, factor, innerSplit: !outerSplit };
}
