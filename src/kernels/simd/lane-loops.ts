/**
 * Loops of known length over pointers. A pointer is a local with the address of an access; loops advance it. After a
 * loop, every pointer has its initial value again.
 */
import { dtypes } from "../../numerics/dtype.ts";
import { coefficientOf } from "../nests/affine.ts";
import type { Access, Loop } from "../nests/nest.ts";
import type { FunctionWriter } from "../../support/wasm/function-writer.ts";
import { advance, countDown, number, set } from "../../support/wasm/instructions.ts";

/** The local of each access. */
export type Pointers = ReadonlyMap<Access, number>;

/** Bytes from one element of an access to the next along a loop. */
export function stepBytes({ offset, dtype }: Access, { atom }: Loop): number {
  return coefficientOf(offset, atom) * dtypes[dtype].bytes;
}

/** Runs `body` once per index of all loops, outermost first. */
export function writeLoops(writer: FunctionWriter, pointers: Pointers, loops: readonly Loop[], body: () => void): void {
  const [loop, ...rest] = loops;
  if (loop === undefined) return body();
  writeLoop(
    writer,
    pointers,
    loop.extent,
    (access) => stepBytes(access, loop),
    () => {
      writeLoops(writer, pointers, rest, body);
    },
  );
}

/** Runs `body` with what is left of the loop after `done` iterations, if any is. */
export function writeRest(
  writer: FunctionWriter,
  pointers: Pointers,
  loop: Loop,
  done: number,
  body: (rest: Loop) => void,
): void {
  if (done === loop.extent) return;
  for (const [access, pointer] of pointers) writer.emit(advance(pointer, done * stepBytes(access, loop)));
  writer.block(() => body({ ...loop, extent: loop.extent - done }));
  for (const [access, pointer] of pointers) writer.emit(advance(pointer, -done * stepBytes(access, loop)));
}

/** Runs `body` `times` times. Between iterations, each pointer moves by `step` bytes. */
export function writeLoop(
  writer: FunctionWriter,
  pointers: Pointers,
  times: number,
  step: (access: Access) => number,
  body: () => void,
): void {
  if (times === 0) return;
  if (times === 1) return writer.block(body);
  writer.block(() => {
    const counter = writer.local("i32");
    writer.emit(set(counter, number(times)));
    const turn = writer.collect(() => {
      writer.block(body);
      for (const [access, pointer] of pointers) writer.emit(advance(pointer, step(access)));
    });
    writer.emit(countDown(counter, turn));
    for (const [access, pointer] of pointers) writer.emit(advance(pointer, -times * step(access)));
  });
}
