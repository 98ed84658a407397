/** Where the tensors of a model come from in its text, for messages, reports and traces. */
import { DiagnosticError, type Place } from "../diagnostics/diagnostic.ts";
import { failAt, type DumpSource } from "../host/syntax/text/source.ts";
import { replaceTensor } from "../ir/api/fusion-builder.ts";
import type { Fusion } from "../ir/api/fusion.ts";
import { fusionState } from "../ir/api/handle.ts";
import type { TensorView } from "../ir/api/tensor-view.ts";
import { at, countWhile } from "../support/invariant.ts";

/** A Fusion that is read from a text. */
export interface Marked {
  readonly source: DumpSource;
  readonly fusion: Fusion;
  /** From which tensor on the text's position is which; both ascend. */
  readonly marks: { readonly tensor: number; readonly position: number }[];
}

/** The result of `make`, whose tensors come from `position`. Braid's own refusals gain that place. */
export function madeAt<T>(reader: Marked, position: number, make: () => T): T {
  const { tensors } = reader.fusion[fusionState];
  const before = reader.marks.at(-1)?.position ?? position;
  reader.marks.push({ tensor: tensors.length, position });
  try {
    const made = make();
    if (before !== position) reader.marks.push({ tensor: tensors.length, position: before });
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
  { fusion, marks, source }: Marked,
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
  let mark = 0;
  for (const [id, tensor] of builder.tensors.entries()) {
    while (mark + 1 < marks.length && at(marks, mark + 1).tensor <= id) mark++;
    const { position } = at(marks, mark);
    const line = countWhile(lines, (start) => start <= position) - 1;
    const { name } = tensor.origin ?? {};
    const site = { path: source.file, line: line + 1, column: position - at(lines, line) + 1 };
    replaceTensor(builder, { ...tensor, origin: { ...(name === undefined ? {} : { name }), source: site } });
  }
  // The lines of the text are known; those of the calls would replace them.
  builder.marks.clear();
  builder.annotations.length = 0;
  return fusion;
}

function lineStarts(text: string): readonly number[] {
  const starts = [0];
  for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", end + 1)) starts.push(end + 1);
  return starts;
}
