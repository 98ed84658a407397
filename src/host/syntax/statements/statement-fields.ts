/** Fields of single kinds of statements. Most depend on other fields of the statement or on the dump's era. */
import {
  allocationSize,
  type IterDomain,
  plainDomain,
  type Tensor,
  type TensorId,
  withoutReductions,
} from "../../../ir/domain.ts";
import { printIterDomain } from "../../../ir/print-tensor.ts";
import { isConstant, sameScalar } from "../../../ir/scalar/fold.ts";
import { constant, printScalar, type Scalar } from "../../../ir/scalar/scalar.ts";
import { makeId, at, invariant } from "../../../support/invariant.ts";
import { collectives, reduceOpNames } from "../../collectives.ts";
import type {
  Allocate,
  Communication,
  EndCoalescing,
  ExprId,
  ForLoop,
  HirAliasSelect,
  LaunchKernel,
  PostOnStream,
  ShardByStream,
  UnitId,
  Wait,
} from "../../nodes.ts";
import type { ReadContext } from "../context.ts";
import { expectField, expectNumber, failExpected, readWord, skipBlanks, take } from "../text/scanner.ts";
import { failAt, type DumpSource } from "../text/source.ts";
import { axisPosition, parseAxis, showsLogicalOrder } from "../values/axis.ts";
import { parseNamed } from "../values/names.ts";
import { leafOf, parseScalar } from "../values/scalar.ts";
import { splitAxes, type SplitAxis } from "../values/split-axes.ts";
import { largestNumber } from "../values/tensor-table.ts";
import { atTensor, failNumber, parseTensor } from "../values/tensor.ts";
import {
  callStyle,
  exprId,
  flag,
  implied,
  namedField,
  numbered,
  printedTensor,
  printTensorOf,
  scalar,
} from "./fields.ts";
import type { Field, Mark } from "./row.ts";

// The numbers of coalesced groups in dumps before 2025-06, which print none at EndCoalescing. A Wait still names the
// number. A number that no communication has belongs to the group that ended before the Wait.

const mention =
  /\b(?<verb>Wait\b[ (]*)?(?<kind>P2PCommunication|Communication|EndCoalescing)\b(?: (?<number>\d{1,15})\b)?/gu;

/** The number for each EndCoalescing without one, by the position after the word. */
function numberGroups(source: DumpSource): ReadonlyMap<number, number> {
  const numbers = new Map<number, number>();
  const posted = new Set<number>();
  const unnumbered: number[] = [];
  const awaited: { readonly number: number; readonly position: number }[] = [];
  for (const match of source.text.matchAll(mention)) {
    const { verb, kind, number } = match.groups ?? {};
    const position = match.index + match[0].length;
    if (number === undefined) {
      if (verb === undefined && kind === "EndCoalescing") unnumbered.push(position);
    } else if (verb === undefined) posted.add(Number(number));
    else awaited.push({ number: Number(number), position });
  }
  let next = 0;
  for (const number of posted) next = Math.max(next, number + 1);
  for (const { number, position } of awaited) {
    next = Math.max(next, number + 1);
    if (posted.has(number)) continue;
    const ended = unnumbered.filter((end) => end < position && !numbers.has(end));
    const [end] = ended;
    if (end === undefined) continue;
    if (ended.length > 1) failAmbiguous(source, position, number);
    numbers.set(end, number);
    posted.add(number);
  }
  for (const end of unnumbered) {
    if (!numbers.has(end)) numbers.set(end, next++);
  }
  return numbers;
}

function failAmbiguous(source: DumpSource, position: number, number: number): never {
  failAt(source, position - String(number).length, {
    code: "dump-incomplete",
    message: `the dump does not say which coalesced group has the number ${number}`,
    expected: "numbers after EndCoalescing, as nvFuser prints since 2025-06",
    help: `write ${number} after the EndCoalescing that this Wait is for`,
  });
}

/** A tensor that has been read. */
function tensorOf({ tensors }: ReadContext, id: TensorId | undefined): Tensor {
  const tensor = id === undefined ? undefined : tensors.byNumber.get(id)?.tensor;
  invariant(tensor !== undefined, "a tensor is read before what depends on it", { id });
  return tensor;
}

/** `buffer=` and the allocated tensor, which the statement already begins with. */
export const buffer: Mark<Allocate> = {
  print: (context, { tensor }) => `buffer=${printTensorOf(tensor, context)}`,
  read: ({ scanner, tensors }, { tensor }) => {
    const start = scanner.position;
    expectField(scanner, "buffer");
    const { id } = parseTensor(scanner, tensors);
    if (id === tensor) return;
    failAt(scanner.source, start, "dump-contradiction", `the memory of T${tensor} is allocated for T${id}`, {
      found: `buffer=T${id}`,
      expected: `buffer=T${tensor}`,
      help: "name the tensor before the = once more",
    });
  },
  begins: (text, position) => text.startsWith("buffer=", position),
};

/** The product of the tensor's extents, in the order in which its axes print. */
export const allocatedSize: Field<Scalar, Allocate> = {
  ...scalar,
  print: (size, context, { tensor, fresh }) => {
    if (fresh) return null;
    const printed = printedTensor(tensor, context);
    const isPlain = printed.domain.allocation === null && showsLogicalOrder(printed);
    const isInOrder = isPlain && sameScalar(size, allocationSize(printed));
    const inOrder = { ...printed, domain: plainDomain(printed.domain.loop) };
    return printScalar(isInOrder ? allocationSize(inOrder) : size, context.spelling);
  },
  absent: (context, draft) => allocationSize(tensorOf(context, draft.tensor)),
};

/** Whether memory is zeroed again after its use, which Braid never does. */
export const resetsToZero: Mark<Allocate> = {
  print: () => "false",
  read: (context, draft) => {
    const start = context.scanner.position;
    if (!flag.read(context, draft)) return;
    failAt(context.scanner.source, start, {
      code: "dump-unsupported",
      message: "an Allocate asks for memory that is zeroed again after its use",
      expected: "resets_to_zero=false",
      help: "write zero_init=true and resets_to_zero=false: then each Allocate zeroes its memory",
    });
  },
};

/** The chunk that the output of a ShardByStream is: its Stream axis was split from an axis of the tensor. */
export const shardFields = {
  axis: implied<number, ShardByStream>((context, { output }) => {
    const { inner } = chunkedAxis(context, output);
    const axes = withoutReductions(tensorOf(context, output).domain.logical);
    return axes.findIndex(({ id }) => id === inner.id);
  }),
  parts: implied<Scalar, ShardByStream>((context, { output }) => chunkedAxis(context, output).outer.extent),
  swizzled: implied<boolean, ShardByStream>((context, { output }) => chunkedAxis(context, output).isSwizzled),
};

function chunkedAxis(context: ReadContext, output: TensorId | undefined): SplitAxis {
  const { scanner, tensors } = context;
  const { logical, loop } = tensorOf(context, output).domain;
  const outer = loop.find(({ parallelType }) => parallelType === "Stream");
  const next = logical.find(({ id }) => id === (outer?.id ?? 0) + 1);
  // A dump that prints logical domains has no other clue. The axis may then be split further, and have any extent.
  if (tensors.splits === null && outer !== undefined && next !== undefined) {
    return { outer, inner: next, isSwizzled: false };
  }
  const split = splitAxes(loop, tensors.splits?.first ?? 0).find(
    ({ outer: stream, inner }) => stream.parallelType === "Stream" && logical.includes(inner),
  );
  if (split !== undefined) return split;
  return failAt(scanner.source, scanner.position, {
    code: "dump-incomplete",
    message: `T${output ?? 0} does not show of which axis it is a chunk`,
    found: `axes numbered ${loop.map(({ id }) => id).join(", ")}`,
    expected: "a streamIdx axis and, with the next number, the axis of a chunk, both numbered after the other axes",
    help: "print the tensor as nvFuser does, inside the loop whose index it takes",
  });
}

/** A position in the logical domain of the sliced tensor, printed as the axis there. */
export const slicedAxis: Field<number, HirAliasSelect> = {
  print: (axis, { program, spelling }, { input }) =>
    printIterDomain(at(at(program.tensors, input).domain.logical, axis), spelling),
  read: (context, { input }) => {
    const { scanner } = context;
    const source = tensorOf(context, input);
    return axisPosition(scanner, scanner.position, source, parseAxis(scanner).id, source.domain.logical);
  },
};

type LoopHeader = Omit<ForLoop, "body">;

export const loopIndex: Field<ForLoop["index"]> = {
  print: (index, { spelling }) => printScalar(index, spelling),
  read: ({ scanner }) => {
    const start = scanner.position;
    const word = readWord(scanner);
    return word === "" ? failExpected(scanner, "the name of the loop's index", start) : leafOf(word);
  },
};

/** The loop runs over all indices of the axis in order. A loop over other indices prints its bounds instead. */
export const loopAxis: Field<ForLoop["iterDomain"], LoopHeader> = {
  print: (axis, { spelling }, { start, stop, step }) => {
    const isWhole = axis !== null && isConstant(start, 0) && isConstant(step, 1) && sameScalar(stop, axis.extent);
    return isWhole ? printIterDomain(axis, spelling) : null;
  },
  read: ({ scanner, tensors }) => ownAxis(tensors, parseAxis(scanner)),
  absent: () => null,
};

/** The axis of the tensor with this number, if it prints the same; otherwise `axis`. */
function ownAxis({ axes }: ReadContext["tensors"], axis: IterDomain): IterDomain {
  const own = axes.get(axis.id)?.axis;
  if (own === undefined || own.iterType !== axis.iterType || own.parallelType !== axis.parallelType) return axis;
  return sameScalar(own.extent, axis.extent) ? own : axis;
}

/** `(0 1 2)` */
export const team: Field<readonly number[]> = {
  print: (devices) => `(${devices.join(" ")})`,
  read: ({ scanner }) => {
    if (!take(scanner, "(")) failExpected(scanner, '"("');
    skipBlanks(scanner);
    const devices: number[] = [];
    while (!take(scanner, ")")) {
      devices.push(expectNumber(scanner, 'a device id or ")"'));
      skipBlanks(scanner);
    }
    return devices;
  },
};

/**
 * A constant root prints as a device id before 2026, and as a position in the team from 2026 on. Other roots, such as
 * the index of a loop over the devices, are positions in every era. The IR has positions.
 */
export const root: Field<Communication["root"], Communication> = {
  print: (value, context, { team: devices }) => {
    if (value === null) return null;
    const isDevice = value.kind === "constant" && context.style < callStyle;
    return isDevice ? String(devices[value.value] ?? value.value) : context.indexText(value);
  },
  read: ({ scanner, names, rootsAreDevices }, { team: devices = [] }) => {
    const start = scanner.position;
    const value = parseNamed(scanner, names, "a root");
    if (!rootsAreDevices || value.kind !== "constant") return value;
    const position = devices.indexOf(value.value);
    if (position >= 0) return position === value.value ? value : constant(position);
    return failAt(scanner.source, start, "dump-contradiction", "the root of a communication is not in its team", {
      found: `device ${value.value}`,
      expected: `one of the devices ${devices.join(", ")}`,
      help: 'before 2026 dumps print the root\'s device id; pass { roots: "positions" } (--as nvfuser,roots=positions) if this one counts the team',
    });
  },
  absent: () => null,
};

const anyReduceOp = namedField(reduceOpNames, "a reduction");

/** nvFuser prints no reduction op. Braid prints every op except the default, sum, because the dump would lose it. */
export const reduceOp: Field<Communication["reduceOp"], Communication> = {
  print: (op, context, statement) => (op === null || op === "sum" ? null : anyReduceOp.print(op, context, statement)),
  read: anyReduceOp.read,
  absent: (_, { type }) => (type !== undefined && collectives[type].reduces ? "sum" : null),
};

/** Dumps before 2025-06 print no number at EndCoalescing, although Waits name it. */
export const groupId: Field<EndCoalescing["id"]> = {
  ...exprId,
  absent: (context) => {
    const { scanner } = context;
    context.groupNumbers ??= numberGroups(scanner.source);
    const number = context.groupNumbers.get(scanner.position);
    return number === undefined ? failExpected(scanner, "the number of the group") : numbered(context, number);
  },
};

const awaitable: ReadonlySet<string> = new Set(["Communication", "P2PCommunication", "EndCoalescing"]);

/** `Communication 39`, whichever kind of communication 39 is. Parsing also accepts the other kinds' names. */
export const awaited: Field<Wait["target"]> = {
  print: (id) => `Communication ${id}`,
  read: ({ scanner }) => {
    const start = scanner.position;
    if (!awaitable.has(readWord(scanner))) failExpected(scanner, '"Communication" and a number', start);
    skipBlanks(scanner);
    return makeId<ExprId>(expectNumber(scanner, "the number of a communication"));
  },
  begins: (text, position) => text[position] !== "(",
};

/** `{T0, i3}`: tensors, and scalars that say nothing of what is read. */
export const kernelInputs: Field<LaunchKernel["inputs"]> = {
  print: (inputs, context) =>
    inputs
      .map((input) =>
        typeof input === "number" ? printTensorOf(input, context) : printScalar(input, context.spelling),
      )
      .join(", "),
  read: ({ scanner, tensors }) => {
    const inputs: (TensorId | Scalar)[] = [];
    skipBlanks(scanner);
    while (!scanner.text.startsWith("}", scanner.position)) {
      inputs.push(atTensor(scanner) ? parseTensor(scanner, tensors).id : parseScalar(scanner));
      skipBlanks(scanner);
      if (!take(scanner, ",")) break;
      skipBlanks(scanner);
    }
    return inputs;
  },
};

export const postedUnit: Field<PostOnStream["unit"]> = {
  print: (unit) => `HostUnit${unit}`,
  read: ({ scanner, posted }) => {
    const start = scanner.position;
    if (!take(scanner, "HostUnit")) failExpected(scanner, '"HostUnit" and its number');
    const number = expectNumber(scanner, "the number of a host unit");
    if (number > largestNumber) failNumber(scanner, start, `HostUnit${number}`);
    if (!posted.has(number)) posted.set(number, start);
    return makeId<UnitId>(number);
  },
};
