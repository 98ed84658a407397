/** Emits loops that carry the offset of each access from a loop to the one inside it. */
import { coefficientOf } from "../nests/affine.ts";
import type { Access, Loop } from "../nests/nest.ts";
import { loopName, product } from "./index-text.ts";

/** For each access, the text of its offset in the loops emitted so far. */
export type Cursor = ReadonlyMap<Access, { readonly name: string; readonly text: string }>;
export type Inner = (cursor: Cursor) => readonly string[];

/** Wraps lines that use a loop's variable in the loop. */
type LoopText = (loop: Loop, lines: readonly string[]) => readonly string[];

export const plainLoop: LoopText = (loop, lines) => {
  const name = loopName(loop);
  return [`for (let ${name} = 0; ${name} < ${loop.extent}; ${name}++) {`, ...lines, "}"];
};

/** Runs `carry` after every `sumBlock` elements of the whole reduction. */
export function blockedLoop(carry: readonly string[]): LoopText {
  return (loop, lines) => {
    const name = loopName(loop);
    return [
      `for (let ${name} = 0; ${name} < ${loop.extent};) {`,
      `const stop = Math.min(${loop.extent}, ${name} + left0);`,
      `left0 -= stop - ${name};`,
      `for (; ${name} < stop; ${name}++) {`,
      ...lines,
      "}",
      "if (left0 === 0) {",
      ...carry,
      "}",
      "}",
    ];
  };
}

interface LoopForm {
  /** `inner` emits further loops. */
  readonly enclosing?: boolean;
  readonly innermost?: LoopText;
}

/** Emits `loops` around the text that `inner` makes from the offsets inside them. */
export function emitLoops(
  loops: readonly Loop[],
  cursor: Cursor,
  inner: Inner,
  form: LoopForm = {},
): readonly string[] {
  const [loop, ...rest] = loops;
  if (loop === undefined) return inner(cursor);
  const name = loopName(loop);
  const declarations: string[] = [];
  const next = new Map(
    [...cursor].map(([access, { name: base, text }]) => {
      const coefficient = coefficientOf(access.offset, loop.atom);
      if (coefficient === 0) return [access, { name: base, text }];
      const moved = `${text} + ${product(name, coefficient)}`;
      // The innermost loop adds the offset at each access; the other loops keep the sum in a variable.
      if (rest.length === 0 && form.enclosing !== true) return [access, { name: base, text: moved }];
      const variable = `${base}_${loop.atom}`;
      declarations.push(`const ${variable} = ${moved};`);
      return [access, { name: base, text: variable }];
    }),
  );
  const around = rest.length === 0 ? (form.innermost ?? plainLoop) : plainLoop;
  return around(loop, [...declarations, ...emitLoops(rest, next, inner, form)]);
}
