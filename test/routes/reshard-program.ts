/** Programs of one resharding, and what they move beside what the busiest device lacks. */
import { compile } from "../../src/compile/compile.ts";
import { Fusion } from "../../src/ir/api/fusion.ts";
import { set } from "../../src/ir/api/ops.ts";
import { type DType, dtypes } from "../../src/numerics/dtype.ts";
import { lack, type Layout } from "./layout.ts";
import { place, sayable } from "./place-layout.ts";
import { mostReceived } from "./received-bytes.ts";

export interface Move {
  readonly shape: readonly number[];
  readonly before: Layout;
  readonly after: Layout;
}

/** The bytes that a device receives or lacks, of the device with most. */
export interface Figure {
  readonly bytes: number;
  readonly lacks: number;
}

/** A set from one layout to the other. */
export function reshardProgram({ shape, before, after }: Move, dtype: DType = "float"): Fusion {
  const [from, to] = [sayable(before), sayable(after)];
  if (from === null || to === null) throw new Error("a layout that Braid cannot say");
  const f = new Fusion();
  const x = f.input(shape, dtype);
  const y = set(x);
  f.output(y);
  place(x, from);
  place(y, to);
  return f;
}

export function devicesOf({ before, after }: Move): number {
  return Math.max(...before.devices, ...after.devices) + 1;
}

/** Of the Program as it is, which may be unverified. */
export function measured(move: Move, backend: "nccl" | "cuda"): Figure {
  const { program } = compile(reshardProgram(move), { devices: devicesOf(move), backend, verify: "off" });
  return { bytes: mostReceived(program), lacks: lackedBytes(move) };
}

export function lackedBytes({ shape, before, after }: Move): number {
  // Braid's own dimensions, by which the parts of an extent that they do not divide round up.
  return lack(shape, sayable(before) ?? before, sayable(after) ?? after) * dtypes.float.bytes;
}

/** Bytes over those that are lacking; infinite where nothing is and bytes move. */
export function ratioOf({ bytes, lacks }: Figure): number {
  return bytes === lacks ? 1 : bytes / lacks;
}

export function geometricMean(ratios: readonly number[]): number {
  return Math.exp(ratios.reduce((sum, ratio) => sum + Math.log(ratio), 0) / ratios.length);
}
