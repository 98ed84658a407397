/** Which constants of the user's code hold which tensors, for texts in which numbers would not say which they are. */
import { siteText } from "../support/call-site.ts";
import { at } from "../support/invariant.ts";
import type { Tensor, TensorId } from "./domain.ts";
import { type FusionData, readersOf } from "./fusion-data.ts";

/** The constants of the user's code that hold tensors, by the site of the call that made them: `mlp.ts:12:15`. */
export type Constants = ReadonlyMap<string, string>;

/**
 * The Fusion with the constants of its tensors. A call that makes several tensors that others use, or that is made
 * several times, has none.
 */
export function withConstants(data: FusionData, constants: Constants): FusionData {
  const readers = readersOf(data);
  const siteOf = ({ origin }: Tensor): string | null => (origin?.source === undefined ? null : siteText(origin.source));
  const results = new Map<string, TensorId[]>();
  for (const tensor of data.tensors) {
    const site = siteOf(tensor);
    // One that nothing reads is the other result of a call of which the program takes one.
    const isInside = (readers.get(tensor.id) ?? []).every(({ output }) => siteOf(at(data.tensors, output)) === site);
    if (site !== null && (!isInside || data.outputs.includes(tensor.id)))
      results.set(site, [...(results.get(site) ?? []), tensor.id]);
  }
  const held = new Map<string, TensorId[]>();
  for (const [site, tensors] of results) {
    const name = constants.get(site);
    if (name !== undefined) held.set(name, [...(held.get(name) ?? []), ...tensors]);
  }
  const byTensor = new Map(
    [...held].flatMap(([name, [id, ...more]]) => (more.length > 0 ? [] : [[id, name] as const])),
  );
  const tensors = data.tensors.map((tensor) => {
    const constant = byTensor.get(tensor.id);
    return constant === undefined ? tensor : { ...tensor, origin: { ...tensor.origin, constant } };
  });
  return { ...data, tensors };
}

/** What an edit of the program can call a tensor; null for those that have no name there, such as gradients. */
export function editableName({ origin }: Tensor): string | null {
  if (origin?.source === undefined || origin.relation !== undefined) return null;
  return origin.constant ?? (/^[A-Za-z_]\w*$/u.test(origin.name ?? "") ? (origin.name ?? null) : null);
}
