/**
 * The lines of a generated kernel that encode the values of its nests, keep them for later nests of the group and store
 * them; and its parameter list.
 */
import { dtypes } from "../../../../numerics/dtype.ts";
import { nestAccesses, type Nest } from "../../../../kernels/nests/nest.ts";
import { computeType, operand } from "../../../../numerics/scalar/expression.ts";
import { at } from "../../../../support/invariant.ts";
import { type BodyContext, loadedElement, moveLines, operandNames, resultName, valueLines } from "./body-text.ts";
import { encodeElementText } from "./element-text.ts";
import { affineText } from "./index-text.ts";
import { distinctParameters, type Parameter } from "../kernel-source.ts";
import type { GroupedNest } from "../plan/nest-groups.ts";

/** Computes and stores copy `u` of `width` elements of every nest; `contexts` are those of `group`, in its order. */
export function resultLines(
  group: readonly GroupedNest[],
  contexts: readonly BodyContext[],
  width: number,
): readonly string[] {
  const stored = contexts.filter((_, i) => at(group, i).stores);
  return [
    ...stored.flatMap((context) => storedLines(context, width)),
    "#pragma unroll",
    `for (int v = 0; v < ${width}; v++) {`,
    ...contexts.flatMap((context, i) => elementLines(context, at(group, i).stores, "u")),
    "}",
    ...stored.flatMap((context) => storeLines(context, width)),
  ];
}

/** Declares the encoded elements of a vector. */
export function storedLines({ nest, prefix }: BodyContext, width: number): readonly string[] {
  return [`alignas(16) ${dtypes[nest.target.dtype].cuda.c} ${prefix}s[${width}];`];
}

/** Element `v` of copy `copy`: its value and its stored form. */
export function elementLines(context: BodyContext, stores: boolean, copy: string): readonly string[] {
  const { prefix } = context;
  return [
    ...valueLines(context, copy, "v"),
    `const auto ${prefix}result = ${resultName(context)};`,
    ...(stores ? [`${prefix}s[v] = ${storedText(context, copy)};`] : []),
  ];
}

/** The stored form of the last value. Its rounding and the packing into 16 bits are one step; a copy keeps its bits. */
function storedText(context: BodyContext, copy: string): string {
  const { body, target } = context.nest;
  const copied = loadedElement(context, copy, "v");
  if (copied !== null) return copied;
  const last = at(body, body.length - 1);
  if (last.kind === "apply")
    return encodeElementText(target.dtype, last.expression, operandNames(context, last.operands));
  return encodeElementText(target.dtype, operand(computeType[target.dtype], 0), [resultName(context)]);
}

/** Moves the `width` encoded elements to memory. */
export function storeLines({ nest, prefix, nameOf }: BodyContext, width: number): readonly string[] {
  const to = `${nameOf(nest.target.memory)} + (${affineText(nest.target.offset, `${prefix}i`)})`;
  return moveLines(nest.target, to, `${prefix}s`, width);
}

/** A nest of a kernel, and the loads whose values are in registers. */
interface Member {
  readonly nest: Nest;
  readonly given: ReadonlyMap<number, unknown>;
  readonly stores: boolean;
}

/** The memory that the kernel of a group reads and writes, and the origins of its indices. */
export function parametersOf(group: readonly Member[]): readonly Parameter[] {
  return distinctParameters(
    group.flatMap(({ nest, given, stores }): readonly Parameter[] => [
      ...nest.body.flatMap((step, i): readonly Parameter[] => {
        if (step.kind === "index") return [{ kind: "origin", position: step.origin }];
        return step.kind === "load" && !given.has(i) ? [step.access.memory] : [];
      }),
      ...(stores ? [nest.target.memory] : []),
    ]),
  );
}

export function parametersText(
  group: readonly Member[],
  parameters: readonly Parameter[],
  nameOf: (memory: Parameter) => string,
): string {
  return parameters
    .map((memory) => {
      if (memory.kind === "origin") return `const long long ${nameOf(memory)}`;
      const written = group.some(({ nest, stores }) => stores && nameOf(nest.target.memory) === nameOf(memory));
      const accesses = group.flatMap(({ nest }) => nestAccesses(nest));
      const dtype = accesses.find((access) => nameOf(access.memory) === nameOf(memory))?.dtype ?? "bool";
      return `${written ? "" : "const "}${dtypes[dtype].cuda.c} *${nameOf(memory)}`;
    })
    .join(", ");
}
