/**
 * The lines of a generated kernel that encode the values of its nests, keep them for later nests of the group and store
 * them; and its parameter list.
 */
import type { Access, Memory, Nest } from "../../../../kernels/nests/nest.ts";
import { computeType, operand } from "../../../../numerics/scalar/expression.ts";
import { at } from "../../../../support/invariant.ts";
import { type BodyContext, loadedElement, moveLines, operandNames, resultName, valueLines } from "./body-text.ts";
import { encodeText, storageTypes } from "./element-text.ts";
import { affineText } from "./index-text.ts";
import { distinctMemories } from "../kernel-source.ts";
import type { GroupedNest } from "../plan/nest-groups.ts";

/** Computes and stores copy `u` of `width` elements of every nest; `contexts` are those of `group`, in its order. */
export function resultLines(
  group: readonly GroupedNest[],
  contexts: readonly BodyContext[],
  width: number,
): readonly string[] {
  const stored = contexts.filter((_, i) => at(group, i).stores);
  return [
    ...stored.map(({ nest, prefix }) => `alignas(16) ${storageTypes[nest.target.dtype]} ${prefix}s[${width}];`),
    "#pragma unroll",
    `for (int v = 0; v < ${width}; v++) {`,
    ...contexts.flatMap((context, i) => elementLines(context, at(group, i).stores, "u")),
    "}",
    ...stored.flatMap(({ nest, prefix, nameOf }) => storeLines(nest, prefix, nameOf, width)),
  ];
}

/** Element `v` of copy `copy`: its value and its stored form. */
function elementLines(context: BodyContext, stores: boolean, copy: string): readonly string[] {
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
  if (last.kind === "apply") return encodeText(target.dtype, last.expression, operandNames(context, last.operands));
  return encodeText(target.dtype, operand(computeType[target.dtype], 0), [resultName(context)]);
}

/** Moves the `width` encoded elements to memory. */
function storeLines(nest: Nest, prefix: string, nameOf: (memory: Memory) => string, width: number): readonly string[] {
  const to = `${nameOf(nest.target.memory)} + (${affineText(nest.target.offset, `${prefix}i`)})`;
  return moveLines(nest.target, to, `${prefix}s`, width);
}

/** The memory that the kernel of a group reads and writes. */
export function parametersOf(group: readonly GroupedNest[]): readonly Memory[] {
  return distinctMemories(
    group.flatMap(({ nest, given, stores }): readonly Memory[] => [
      ...nest.body.flatMap((step, i) => (step.kind === "load" && !given.has(i) ? [step.access.memory] : [])),
      ...(stores ? [nest.target.memory] : []),
    ]),
  );
}

export function parametersText(
  group: readonly GroupedNest[],
  parameters: readonly Memory[],
  nameOf: (memory: Memory) => string,
): string {
  return parameters
    .map((memory) => {
      const written = group.some(({ nest, stores }) => stores && nameOf(nest.target.memory) === nameOf(memory));
      const accesses = group.flatMap(({ nest }) => accessesOf(nest));
      const dtype = accesses.find((access) => nameOf(access.memory) === nameOf(memory))?.dtype ?? "bool";
      return `${written ? "" : "const "}${storageTypes[dtype]} *${nameOf(memory)}`;
    })
    .join(", ");
}

export function accessesOf(nest: Nest): readonly Access[] {
  return [...nest.body.flatMap((step) => (step.kind === "load" ? [step.access] : [])), nest.target];
}
