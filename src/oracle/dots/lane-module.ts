/**
 * The loops of float-dots in WebAssembly: the same operations in the same order, for eight columns at once, and so the
 * same bits. A row of `a` is read as it lies. Columns of `b` are packed, element k of all eight side by side.
 */
import { advance, countDown, get, load, set, store, vector } from "../../support/wasm/instructions.ts";
import { createFunctionWriter } from "../../support/wasm/function-writer.ts";
import { type Code, encodeModule, type WasmFunction } from "../../support/wasm/encoding.ts";

/** Which of the operands' errors are not 0. */
export type ErrorsOf = "none" | "left" | "both";

/** Columns of a call. */
export const packedColumns = 8;

const vectors = packedColumns / 2;
const vectorBytes = 16;
const elementBytes = 8;

/** Doubles that a call writes. */
export const callResults = 3 * packedColumns;

/**
 * One function per `ErrorsOf`. Its parameters are addresses, and the number of products of a sum, at least one: a row
 * of `a` and its errors, packed columns of `b` and their errors, and where eight sums, eight magnitudes and eight spreads
 * go. Errors that are 0 are not read, and their spreads are not written.
 */
export function laneModule(): Uint8Array {
  return encodeModule([dotsOf("none"), dotsOf("left"), dotsOf("both")], "unshared");
}

const [leftAt, leftErrorAt, rightAt, rightErrorAt, resultAt, count] = [0, 1, 2, 3, 4, 5] as const;

function dotsOf(errors: ErrorsOf): WasmFunction {
  const writer = createFunctionWriter(6);
  const lanes = (): number => writer.local("v128");
  const each = Array.from({ length: vectors }, (_, i) => ({
    offset: i * vectorBytes,
    sum: lanes(),
    magnitude: lanes(),
    spread: lanes(),
  }));
  const [p, u, furthest, q, size, product] = [lanes(), lanes(), lanes(), lanes(), lanes(), lanes()];
  const splat = (pointer: number): Code => load("v128.load64_splat", { pointer, offset: 0 });
  const add = (local: number, term: Code): Code => set(local, vector("f64x2.add", get(local), term));
  const body: Code[] = [set(p, splat(leftAt))];
  if (errors !== "none") body.push(set(u, splat(leftErrorAt)));
  if (errors === "both") body.push(set(furthest, vector("f64x2.add", vector("f64x2.abs", get(p)), get(u))));
  for (const { offset, sum, magnitude, spread } of each) {
    body.push(
      set(q, load("v128.load", { pointer: rightAt, offset })),
      set(product, vector("f64x2.mul", get(p), get(q))),
      add(sum, get(product)),
      add(magnitude, vector("f64x2.abs", get(product))),
    );
    if (errors === "none") continue;
    body.push(set(size, vector("f64x2.mul", vector("f64x2.abs", get(q)), get(u))));
    const error = vector("f64x2.mul", get(furthest), load("v128.load", { pointer: rightErrorAt, offset }));
    body.push(add(spread, errors === "left" ? get(size) : vector("f64x2.add", error, get(size))));
  }
  const step = packedColumns * elementBytes;
  body.push(advance(leftAt, elementBytes), advance(rightAt, step));
  if (errors !== "none") body.push(advance(leftErrorAt, elementBytes));
  if (errors === "both") body.push(advance(rightErrorAt, step));
  writer.emit(countDown(count, body.flat()));
  for (const { offset, sum, magnitude, spread } of each) {
    const results = errors === "none" ? [sum, magnitude] : [sum, magnitude, spread];
    results.forEach((local, i) => {
      writer.emit(store({ pointer: resultAt, offset: offset + i * step }, get(local)));
    });
  }
  return { name: errors, parameters: 6, locals: writer.locals(), body: writer.body() };
}
