/**
 * Tensors and meshes in dump text: `T2_g_float[iStreamIdx6{i0}, iS7{i6}, rS10{i4}] (DeviceMesh{0 1})`. The axes are
 * those of the loop domain; domain-notes.ts has the other domains.
 */
import { DiagnosticError } from "../../../diagnostics/diagnostic.ts";
import { DeviceMesh, type NestedDevices } from "../../../ir/device-mesh.ts";
import {
  type IterDomain,
  type MemoryType,
  plainDomain,
  type Tensor,
  type TensorDomain,
  type TensorId,
  withoutReductions,
} from "../../../ir/domain.ts";
import { didTypes } from "../../../ir/parallel-type.ts";
import { memoryLetters } from "../../../ir/print-tensor.ts";
import { extentsDiffer } from "../../../ir/scalar/fold.ts";
import { type DType, dtypesBy } from "../../../numerics/dtype.ts";
import { makeId, at, keysOf } from "../../../support/invariant.ts";
import {
  expect,
  expectNumber,
  failExpected,
  isDigit,
  peek,
  type DumpScanner,
  skipBlanks,
  take,
} from "../text/scanner.ts";
import { failAt } from "../text/source.ts";
import { logicalOrder, parseAxis } from "./axis.ts";
import { domainsHelp, notedDomain, requireWhole } from "./domain-notes.ts";
import { splitDomain } from "./split-axes.ts";
import { addPrintedTensor, largestNumber, type TensorTable } from "./tensor-table.ts";

const dtypeByText: ReadonlyMap<string, DType> = dtypesBy("printed");

const memories = keysOf(memoryLetters).map((memory) => [`${memoryLetters[memory]}_`, memory] as const);

/** Whether a tensor begins here, with `T` and a number. */
export function atTensor(scanner: DumpScanner): boolean {
  return peek(scanner) === 84 && isDigit(scanner.text.charCodeAt(scanner.position + 1));
}

/** The tensor that is printed here, or the one whose memory it has. */
export function parseTensor(scanner: DumpScanner, table: TensorTable): Tensor {
  const { position } = scanner;
  const tensor = parsePrinted(scanner, table);
  const owner = table.aliases.get(tensor.id);
  if (owner === undefined) return tensor;
  const met = table.byNumber.get(owner)?.tensor;
  return met !== undefined && isAlike(tensor, met) ? met : failAlias(scanner, position, tensor, owner);
}

function isAlike(alias: Tensor, owner: Tensor): boolean {
  const [a, b] = [withoutReductions(alias.domain.logical), withoutReductions(owner.domain.logical)];
  if (alias.dtype !== owner.dtype || a.length !== b.length) return false;
  return a.every(({ extent }, i) => !extentsDiffer(extent, at(b, i).extent));
}

function failAlias({ source }: DumpScanner, position: number, { id }: Tensor, owner: number): never {
  failAt(source, position, {
    code: "dump-unsupported",
    message: `T${id} has the memory of T${owner}, which has another dtype or shape or is not printed before`,
    expected: "a tensor that shares memory with one of its own dtype and shape",
    help: "write in place with one tensor as both input and output",
  });
}

function parsePrinted(scanner: DumpScanner, table: TensorTable): Tensor {
  const { text, position: start } = scanner;
  if (!atTensor(scanner)) failExpected(scanner, "a tensor, such as T0_g_float[iS0{i0}]");
  const end = tensorEnd(text, start);
  const known = end < 0 ? undefined : table.byText.get(text.slice(start, end));
  if (known === undefined) return readTensor(scanner, table);
  scanner.position = end;
  return known;
}

/**
 * The end of a tensor's text, including its mesh; -1 if it has no end, or contains positions. Axes contain no brackets.
 */
function tensorEnd(text: string, start: number): number {
  const bracket = text.indexOf("]", start) + 1;
  if (bracket === 0 || text.startsWith(" ca_pos(", bracket) || text.startsWith(" produce_pos(", bracket)) return -1;
  if (!text.startsWith(" (DeviceMesh{", bracket)) return bracket;
  const close = text.indexOf(")", bracket) + 1;
  return close === 0 ? -1 : close;
}

function readTensor(scanner: DumpScanner, table: TensorTable): Tensor {
  const start = scanner.position;
  scanner.position++;
  const number = expectNumber(scanner, "the number of a tensor");
  if (number > largestNumber) failNumber(scanner, start, `T${number}`);
  if (!take(scanner, "_")) failExpected(scanner, '"_" and the memory of the tensor');
  const memory = parseMemory(scanner);
  const dtype = parseDType(scanner);
  const loop = parseAxes(scanner);
  const axesEnd = scanner.position;
  skipPositions(scanner);
  const meshStart = scanner.position;
  const mesh = parseMesh(scanner, table);
  // Without positions, which differ between uses of one tensor.
  const text = scanner.text.slice(start, axesEnd) + scanner.text.slice(meshStart, scanner.position);
  const known = table.byText.get(text);
  if (known !== undefined) return known;
  const note = table.notes.get(number);
  const domain = note === undefined ? printedDomain(scanner, start, number, loop, table) : notedDomain(note, loop);
  const tensor: Tensor = { id: makeId<TensorId>(number), dtype, memory, domain, mesh };
  return addPrintedTensor(table, scanner.source, start, text, tensor);
}

/** The domain of a tensor of which the dump shows no more than the printed axes. */
function printedDomain(
  scanner: DumpScanner,
  start: number,
  number: number,
  loop: readonly IterDomain[],
  { splits }: TensorTable,
): TensorDomain {
  const split = splits === null ? null : splitDomain(loop, splits);
  if (split !== null) return split;
  requireWhole(scanner, start, number, loop);
  const logical = logicalOrder(loop);
  if (logical !== null) return { ...plainDomain(loop), logical };
  return failAt(scanner.source, start, "dump-incomplete", `T${number} does not show the order of its axes`, {
    found: `axes numbered ${loop.map(({ id }) => id).join(", ")}, those of devices or streams first`,
    expected: `numbers in order after those, or the logical domain of T${number} under "TransformPrinter :"`,
    help: domainsHelp,
  });
}

function parseMemory(scanner: DumpScanner): MemoryType {
  const found = memories.find(([text]) => take(scanner, text));
  if (found !== undefined) return found[1];
  const undated = memories.find(([text]) => scanner.text.startsWith(`${text.slice(0, -1)}[`, scanner.position));
  if (undated !== undefined) {
    scanner.position += undated[0].length - 1;
    return undated[1];
  }
  const foreign = take(scanner, "s_") ? "shared" : take(scanner, "t_") ? "tensor core" : null;
  if (foreign === null) failExpected(scanner, "the memory of the tensor: l, g or sym");
  return failAt(scanner.source, scanner.position - 2, "dump-unsupported", `a tensor is in ${foreign} memory`, {
    expected: "l (local), g (global) or sym (symmetric)",
    help: "such tensors exist only inside kernels; pass the dump of a host program",
  });
}

/** A container of another form, of a branch before September 2024. */
export function failEra(scanner: DumpScanner): never {
  return failAt(scanner.source, scanner.position, "dump-unsupported", "the dump is a draft of before September 2024", {
    expected: "%HostIrContainer { (inputs) -> (outputs) :",
    help: "print the program with nvFuser from 2024-09 on",
  });
}

/** That of dumps which print none. */
const unprinted: DType = "float";

function parseDType(scanner: DumpScanner): DType {
  const { text, position } = scanner;
  const bracket = text.indexOf("[", position);
  if (bracket === position) return unprinted;
  const name = bracket < 0 ? "" : text.slice(position, bracket);
  const dtype = dtypeByText.get(name);
  if (dtype !== undefined) {
    scanner.position = bracket;
    return dtype;
  }
  if (!/^[\w:<>]+$/u.test(name)) failExpected(scanner, 'a dtype and "["');
  return failAt(scanner.source, position, "dump-unsupported", `there is no dtype ${name}`, {
    found: name,
    expected: [...dtypeByText.keys()].join(", "),
    help: "convert the tensor to one of these dtypes",
  });
}

function parseAxes(scanner: DumpScanner): readonly IterDomain[] {
  if (!take(scanner, "[")) failExpected(scanner, '"[" and the axes');
  skipBlanks(scanner);
  if (take(scanner, "]")) return [];
  const axes: IterDomain[] = [];
  for (;;) {
    const start = scanner.position;
    const axis = parseAxis(scanner);
    if (axes.some(({ id }) => id === axis.id)) {
      failAt(scanner.source, start, "dump-contradiction", `two axes of a tensor have the number ${axis.id}`, {
        expected: "a unique number for every axis",
        help: "give each axis a new number, as nvFuser does",
      });
    }
    axes.push(axis);
    skipBlanks(scanner);
    if (take(scanner, "]")) return axes;
    if (!take(scanner, ",")) failExpected(scanner, '"," or "]"');
    skipBlanks(scanner);
  }
}

/** `ca_pos( 1 )` and `produce_pos( 2 )` tell where nvFuser's kernels inline a tensor. Host programs do not inline. */
function skipPositions(scanner: DumpScanner): void {
  while (take(scanner, " ca_pos(") || take(scanner, " produce_pos(")) {
    skipBlanks(scanner);
    expectNumber(scanner, "a position");
    skipBlanks(scanner);
    if (!take(scanner, ")")) failExpected(scanner, '")"');
  }
}

export function failNumber(scanner: DumpScanner, position: number, name: string): never {
  return failAt(scanner.source, position, "dump-unsupported", `the number of ${name} is too large`, {
    expected: `a number up to ${largestNumber}`,
    help: "number the program's tensors, streams and host units from 0",
  });
}

/** Tensors separated by commas, up to a brace. A comma may also precede the brace. */
export function parseTensorList(scanner: DumpScanner, table: TensorTable): readonly TensorId[] {
  const ids: TensorId[] = [];
  for (;;) {
    skipBlanks(scanner);
    if (scanner.text.startsWith("}", scanner.position)) return ids;
    ids.push(parseTensor(scanner, table).id);
    skipBlanks(scanner);
    if (scanner.text.startsWith("}", scanner.position)) return ids;
    expect(scanner, ",");
  }
}

/** ` (DeviceMesh{0 1})` or ` (DeviceMesh{{0 1}{2 3}})`; null if neither follows. */
function parseMesh(scanner: DumpScanner, { meshes }: TensorTable): DeviceMesh | null {
  if (!take(scanner, " (DeviceMesh")) return null;
  const start = scanner.position;
  const close = scanner.text.indexOf(")", start) + 1;
  const known = close === 0 ? undefined : meshes.get(scanner.text.slice(start, close));
  if (known !== undefined) {
    scanner.position = close;
    return known;
  }
  const devices = parseDevices(scanner, 1);
  if (!take(scanner, ")")) failExpected(scanner, '")" after the mesh');
  try {
    const mesh = new DeviceMesh(devices);
    meshes.set(scanner.text.slice(start, scanner.position), mesh);
    return mesh;
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    const { code, message, found = "", expected = "", help = "" } = at(error.diagnostics, 0);
    return failAt(scanner.source, start, { code, message, found, expected, help });
  }
}

function parseDevices(scanner: DumpScanner, depth: number): NestedDevices {
  if (!take(scanner, "{")) failExpected(scanner, '"{" and device ids');
  const devices: (number | NestedDevices)[] = [];
  for (;;) {
    skipBlanks(scanner);
    if (take(scanner, "}")) return devices;
    if (peek(scanner) !== 123) devices.push(expectNumber(scanner, 'a device id or "}"'));
    else if (depth < didTypes.length) devices.push(parseDevices(scanner, depth + 1));
    else failExpected(scanner, `a mesh of at most ${didTypes.length} dimensions`);
  }
}
