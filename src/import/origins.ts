/** Where the tensors of a model come from in its text, for messages, reports and traces. */
import { DiagnosticError, type Place } from "../diagnostics/diagnostic.ts";
import { failAt, type DumpSource } from "../host/syntax/text/source.ts";
import { replaceTensor } from "../ir/api/fusion-builder.ts";
import { Fusion } from "../ir/api/fusion.ts";
import { fusionState } from "../ir/api/handle.ts";
import type { TensorView } from "../ir/api/tensor-view.ts";
import { at, countWhile } from "../support/invariant.ts";

/** A Fusion that is read from a text. */
export interface Marked {
  readonly source: DumpSource;
  readonly fusion: Fusion;
  /** The position in the text of each tensor that `madeAt` made. */
  readonly positions: number[];
}

/** A Fusion whose tensors come from a file, not from the calls that make them, until `marksCalls` is set again. */
export function importedFusion(): Fusion {
  const fusion = new Fusion();
  fusion[fusionState].marksCalls = false;
  return fusion;
}

/** The result of `make`, whose tensors come from `position`. Braid's own refusals gain that place. */
export function madeAt<T>(reader: Marked, position: number, make: () => T): T {
  const { tensors } = reader.fusion[fusionState];
  const first = tensors.length;
  try {
    const made = make();
    // A call inside of this one says more.
    for (let id = first; id < tensors.length; id++) reader.positions[id] ??= position;
    return made;
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    const [first] = error.diagnostics;
    if (first === undefined || isInText(first.place)) throw error;
    const { message, found = "", expected = "", help = "" } = first;
    return failAt(reader.source, position, first.code, message, { found, expected, help });
  }
}

function isInText(place: Place | undefined): boolean {
  return place?.kind === "file";
}

/** The Fusion, whose tensors now have their places in the text, and inputs and outputs the names of the model. */
export function withSourceOrigins(
  { fusion, positions, source }: Marked,
  named: readonly (readonly [TensorView, string])[],
): Fusion {
  const used = new Set<string>();
  for (const [tensor, name] of named) {
    if (tensor.name !== null || used.has(name)) continue;
    used.add(name);
    tensor.named(name);
  }
  const builder = fusion[fusionState];
  const lines = lineStarts(source.text);
  let position = 0;
  for (const [id, tensor] of builder.tensors.entries()) {
    position = positions[id] ?? position;
    const line = countWhile(lines, (start) => start <= position) - 1;
    const { name } = tensor.origin ?? {};
    const site = { path: source.file, line: line + 1, column: position - at(lines, line) + 1 };
    replaceTensor(builder, { ...tensor, origin: { ...(name === undefined ? {} : { name }), source: site } });
  }
  builder.marksCalls = true;
  return fusion;
}

function lineStarts(text: string): readonly number[] {
  const starts = [0];
  for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", end + 1)) starts.push(end + 1);
  return starts;
}
