/**
 * What the machine needs from a back end: memory and arithmetic. The machine decides when a command runs and has no
 * memory. A back end moves the bytes and knows nothing of streams.
 */
import type { Launch } from "../commands/command.ts";
import type { View } from "../commands/view.ts";
import type { ReductionOpType } from "../ir/ops/op.ts";

/** What is read: a view of live memory, or of the bytes that `save` kept of the view around it. */
export interface Source<Saved> {
  readonly view: View;
  readonly saved: Saved | null;
}

/** All views of one call have equal shapes and dtypes. Buffers may be of any rank. */
export interface Compute<Saved> {
  launch(rank: number, command: Launch): void;
  copy(source: Source<Saved>, destination: View): void;
  /**
   * The sources combined in order, in float32 for half and bfloat16 with one rounding. `destination` may be one of the
   * sources exactly, and overlaps none otherwise.
   */
  combine(op: ReductionOpType, sources: readonly Source<Saved>[], destination: View): void;
  /** Keeps the bytes that lie under a view, gaps included, so that any view inside it can be read from them later. */
  save(view: View): Saved;
}
