/**
 * The result of a contender, or the reason why it failed. A failed contender is left out of the rest of the
 * measurement.
 */
export type Outcome<T> =
  { readonly kind: "done"; readonly value: T } | { readonly kind: "failed"; readonly why: string };
