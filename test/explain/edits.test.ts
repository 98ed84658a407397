/** Edits that move Stream to another axis: their text, typed, makes the tensor that is predicted. */
import { expect, it } from "vitest";
import { Fusion, relu, type TensorView } from "@braid-compiler/braid";
import { editsFor } from "../../src/explain/edits.ts";
import { printTensor } from "../../src/ir/print-tensor.ts";
import { at } from "../../src/support/invariant.ts";

interface Row {
  readonly what: string;
  readonly text: string;
  readonly written: (z: TensorView) => void;
  readonly typed: (z: TensorView) => void;
}

const rows: readonly Row[] = [
  {
    what: "chunks",
    text: 'z.outerSplit(1, 4).parallelize("Stream") in place of z.outerSplit(0, 2).parallelize("Stream")',
    written: (z) => z.outerSplit(0, 2).parallelize("Stream"),
    typed: (z) => z.outerSplit(1, 4).parallelize("Stream"),
  },
  {
    what: "a whole axis",
    text: 'z.outerSplit(1, 4).parallelize("Stream") in place of z.axis(0).parallelize("Stream")',
    written: (z) => z.axis(0).parallelize("Stream"),
    typed: (z) => z.outerSplit(1, 4).parallelize("Stream"),
  },
  {
    what: "chunks beside a cut that counts axes after them",
    text: 'z.axis(0).parallelize("Serial"); z.outerSplit(3, 4).parallelize("Stream"), after the other calls on z',
    written: (z) => {
      z.outerSplit(0, 2).parallelize("Stream");
      z.outerSplit(1, 2).parallelize("DIDx");
    },
    typed: (z) => {
      z.outerSplit(0, 2).parallelize("Stream");
      z.outerSplit(1, 2).parallelize("DIDx");
      z.axis(0).parallelize("Serial");
      z.outerSplit(3, 4).parallelize("Stream");
    },
  },
];

function built(annotate: (z: TensorView) => void): ReturnType<Fusion["data"]> {
  const f = new Fusion();
  const z = relu(f.input([8, 16])).named("z");
  annotate(z);
  f.output(z);
  return f.data();
}

/** As printed, without numbers of axes. */
function shape({ tensors }: ReturnType<Fusion["data"]>): string {
  return printTensor(at(tensors, 1)).replaceAll(/(?<=[A-Za-z])\d+(?=\{)/gu, "");
}

it.each(rows)("of $what", ({ text, written, typed }) => {
  const data = built(written);
  const { id } = at(data.tensors, 1);
  const from = at(data.tensors, 0).id;
  const refusal = { op: "", from, tensor: id, beside: "", made: id, rule: "whole", because: "", source: null } as const;
  const edit = editsFor({ entries: [refusal], count: 1 }, data, 4)
    .flat()
    .find((each) => each.text.includes('4).parallelize("Stream")'));
  expect(edit?.text).toBe(text);
  expect(edit && shape(edit.apply(data))).toBe(shape(built(typed)));
});
