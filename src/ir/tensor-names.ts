/** What the user calls tensors, for texts in which numbers would not say which they are. */
import { siteText } from "../support/call-site.ts";
import { at } from "../support/invariant.ts";
import type { Tensor, TensorId } from "./domain.ts";
import { type FusionData, readersOf } from "./fusion-data.ts";
import { nameOf } from "./origin.ts";

/** The constants of the user's code that hold tensors, by the site of the call that made them: `mlp.ts:12:15`. */
export type Constants = ReadonlyMap<string, string>;

/** What the user calls tensors. */
export interface TensorNames {
  /** As `tensor.named` gave it, or else the constant that holds it; null without either. */
  readonly nameOf: (tensor: Tensor) => string | null;
  /** What an edit of the program can call it; null for tensors that have no name there, such as gradients. */
  readonly editable: (id: TensorId) => string | null;
}

/** A call that makes several tensors that others use, or that is made several times, has no name. */
export function tensorNames(data: FusionData, constants: Constants): TensorNames {
  const readers = readersOf(data);
  const siteOf = ({ origin }: Tensor): string | null => (origin?.source === undefined ? null : siteText(origin.source));
  const results = new Map<string, TensorId[]>();
  for (const tensor of data.tensors) {
    const site = siteOf(tensor);
    const reading = readers.get(tensor.id) ?? [];
    const isInside = reading.length > 0 && reading.every(({ output }) => siteOf(at(data.tensors, output)) === site);
    if (site !== null && !isInside) results.set(site, [...(results.get(site) ?? []), tensor.id]);
  }
  const unique = new Set<string>();
  const repeated = new Set<string>();
  for (const name of [...results.keys()].flatMap((site) => constants.get(site) ?? [])) {
    (unique.has(name) ? repeated : unique).add(name);
  }
  /** Of the one result of a call. */
  const constantAt = (site: string | null): string | null => {
    const name = site === null || results.get(site)?.length !== 1 ? undefined : constants.get(site);
    return name === undefined || repeated.has(name) ? null : name;
  };
  const isResult = (tensor: Tensor): boolean => results.get(siteOf(tensor) ?? "")?.[0] === tensor.id;
  return {
    nameOf: (tensor) => {
      const constant = constantAt(siteOf(tensor));
      const relation = tensor.origin?.relation;
      if (nameOf(tensor) !== null || constant === null) return nameOf(tensor);
      if (relation !== undefined) return `${relation} of ${constant}`;
      return isResult(tensor) ? constant : null;
    },
    editable: (id) => {
      const tensor = at(data.tensors, id);
      const site = siteOf(tensor);
      if (site === null || results.get(site)?.length !== 1 || !isResult(tensor)) return null;
      const name = tensor.origin?.name ?? "";
      return constantAt(site) ?? (/^[A-Za-z_]\w*$/u.test(name) ? name : null);
    },
  };
}

/** The text with names instead of numbers: `hidden = linear(x, T3)` of `T4 = linear(T0, T3)`. */
export function withNames(text: string, tensors: readonly Tensor[], { nameOf: named }: TensorNames): string {
  return text.replaceAll(/\bT(\d+)\b/gu, (number, id: string) => {
    const tensor = tensors[Number(id)];
    return (tensor === undefined ? null : named(tensor)) ?? number;
  });
}
