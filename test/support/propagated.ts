/** The shardings that propagation spreads, as short texts: `s3 x2 4 r5`. */
import { type Fusion, type FusionData, lower, type LowerOptions, type TensorView } from "@braid-compiler/braid";
import { printTensor } from "../../src/ir/print-tensor.ts";

/** The Fusion after pass `pass`. What later passes refuse does not matter. */
export function afterPass(pass: string, f: Fusion, options: LowerOptions = {}): FusionData {
  let result: FusionData | null = null;
  const take = (program: FusionData): void => {
    result = program;
  };
  let refusal: unknown = null;
  try {
    lower(f, {
      ...options,
      onPass: (event) => {
        if (event.pass === pass && event.program.kind === "Fusion") take(event.program);
      },
    });
  } catch (error) {
    refusal = error;
  }
  if (result === null) throw new Error(`no Fusion after ${pass}`, { cause: refusal });
  return result;
}

/** The tensors after propagation as text. */
export function propagated(f: Fusion, options: LowerOptions = {}): (tensor: TensorView) => string {
  const { tensors } = options.propagate === false ? f.data() : afterPass("propagate-shardings", f, options);
  return (tensor) => {
    const data = tensors[tensor.id];
    if (data === undefined) throw new Error(`no T${tensor.id}`);
    return shape(printTensor(data));
  };
}

/**
 * `[sS3{2} ..]` without numbers and mesh: Stream is s, DIDx x, DIDy y, DIDz z, a reduced axis r, other axes their
 * extents.
 */
function shape(text: string): string {
  const axes = /\[(?<axes>.*)\]/u.exec(text)?.groups?.axes ?? "";
  return axes
    .split(", ")
    .map((axis) => {
      const found = /^(?<reduced>[rib])(?<type>S|streamIdx|deviceIdx\.[xyz])\d+\{(?<extent>.*)\}/u.exec(axis)?.groups;
      const type =
        found?.type?.startsWith("device") === true ? found.type.slice(-1) : found?.type === "streamIdx" ? "s" : "";
      return `${found?.reduced === "r" ? "r" : ""}${type}${found?.extent ?? axis}`;
    })
    .join(" ");
}
