/**
 * Typed arrays with the same bytes are equal. vitest would compare them by key, a microsecond for each element; it still
 * does where bytes differ, and says which.
 */
import { expect } from "vitest";

const done = Symbol.for("braid tests compare bytes");

const bytes = ({ buffer, byteOffset, byteLength }: ArrayBufferView): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

// This file is evaluated for each test file, in one process.
if (Reflect.get(globalThis, done) !== true) {
  Reflect.set(globalThis, done, true);
  expect.addEqualityTesters([
    (a: unknown, b: unknown) =>
      ArrayBuffer.isView(a) && ArrayBuffer.isView(b) && a.constructor === b.constructor && bytes(a).equals(bytes(b))
        ? true
        : undefined,
  ]);
}
