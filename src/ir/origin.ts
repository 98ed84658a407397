/**
 * What a tensor is to the user: the name that `tensor.named` gave it, the constant that holds it, and for a tensor that
 * a pass made, how it relates to one of the user's. Ops do not read it. Messages name tensors by number (`T3`);
 * `withOrigins` adds what the numbers stand for.
 */
import { type Diagnostic, DiagnosticError, type MentionedTensor } from "../diagnostics/diagnostic.ts";
import { siteText } from "../support/call-site.ts";
import type { Annotation, Relation, Tensor, TensorOrigin } from "./domain.ts";

/** The origin of a tensor made from `tensor`. A tensor of a pass passes its own relation on. */
export function derivedOrigin(
  { origin }: Pick<Tensor, "origin">,
  relation: Relation,
): { readonly origin?: TensorOrigin } {
  return origin === undefined ? {} : { origin: { relation, ...origin } };
}

/** `hidden`, `chunk of hidden`; null without a name. */
export function nameOf({ origin }: Pick<Tensor, "origin">): string | null {
  return related(origin?.name, origin);
}

/** The same in messages and tables: without a name, by the constant that holds it. */
export function spokenName({ origin }: Pick<Tensor, "origin">): string | null {
  return related(origin?.name ?? origin?.constant, origin);
}

function related(name: string | undefined, origin: TensorOrigin | undefined): string | null {
  if (name === undefined) return null;
  return origin?.relation === undefined ? name : `${origin.relation} of ${name}`;
}

/** The user's call that put Stream on the tensor, or on the one that it has Stream from; for messages. */
export function streamCallOf(tensor: Pick<Tensor, "id" | "origin">): Annotation | undefined {
  const { annotations = [], streamOf } = tensor.origin ?? {};
  const own = annotations.find(({ call }) => call.endsWith('.parallelize("Stream")'));
  if (own === undefined) return streamOf;
  return { call: `Stream as on ${spokenName(tensor) ?? `T${tensor.id}`}`, source: own.source };
}

/** The text with names instead of numbers: `hidden = linear(x, T3)` of `T4 = linear(T0, T3)`. */
export function withNames(text: string, tensors: readonly Tensor[]): string {
  return text.replaceAll(/\bT(\d+)\b/gu, (number, id: string) => spokenName(tensors[Number(id)] ?? {}) ?? number);
}

/** The result of `run`. Diagnostics that it throws gain the origins and annotations of the tensors that they mention. */
export function withOrigins<T>(tensors: readonly Tensor[], run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (!(error instanceof DiagnosticError)) throw error;
    throw new DiagnosticError(error.diagnostics.map((diagnostic) => originated(diagnostic, tensors, true)));
  }
}

/**
 * The diagnostic with the origins of the tensors that it mentions, in the order in which it mentions them. `annotated`:
 * also with the lines of the calls that placed them.
 */
export function originated<D extends Diagnostic>(diagnostic: D, tensors: readonly Tensor[], annotated = false): D {
  if (diagnostic.tensors !== undefined) return diagnostic;
  const { place, message, found = "", notes = [] } = diagnostic;
  const texts = [place !== undefined && "text" in place ? place.text : "", message, found, ...notes];
  const all = mentioned(texts).flatMap((id): readonly MentionedTensor[] => {
    const name = spokenName(tensors[id] ?? {});
    const { source, annotations = [], streamOf } = tensors[id]?.origin ?? {};
    const hasStream = tensors[id]?.domain.loop.some(({ parallelType }) => parallelType === "Stream") === true;
    const calls = hasStream && streamOf !== undefined ? [...annotations, streamOf] : annotations;
    const placed = annotated ? calls.map((each) => ({ ...each, source: siteText(each.source) })) : [];
    if (name === null && source === undefined) return [];
    return [
      {
        tensor: `T${id}`,
        ...(name === null ? {} : { name }),
        ...(source === undefined ? {} : { source: siteText(source) }),
        ...(placed.length === 0 ? {} : { annotations: placed }),
      },
    ];
  });
  const shown = all.filter(({ name }, i) => i === 0 || name !== undefined);
  return shown.length === 0 ? diagnostic : { ...diagnostic, tensors: shown };
}

/** `  // T3 hidden, T5 chunk of hidden`, for the named tensors in a text; empty if it has none. */
export function namesComment(text: string, tensors: readonly Tensor[]): string {
  const named = namedIn([text], tensors).map(({ tensor, name }) => `${tensor} ${name}`);
  return named.length === 0 ? "" : `  // ${named.join(", ")}`;
}

/** The named tensors that the texts mention, in order. */
export function namedIn(
  texts: readonly string[],
  tensors: readonly Tensor[],
): readonly { readonly tensor: string; readonly name: string }[] {
  if (!tensors.some(({ origin }) => origin?.name !== undefined)) return [];
  return mentioned(texts).flatMap((id) => {
    const tensor = tensors[id];
    const name = tensor === undefined ? null : nameOf(tensor);
    return name === null ? [] : [{ tensor: `T${id}`, name }];
  });
}

/** The numbers of the tensors in the texts: of `T3` and `T3_g_float[...]`. */
function mentioned(texts: readonly string[]): readonly number[] {
  return [...new Set(texts.flatMap((text) => Array.from(text.matchAll(/\bT(\d+)(?=_|\b)/gu), ([, id]) => Number(id))))];
}
