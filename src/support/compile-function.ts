/**
 * The only place that compiles generated code, so that a page with a strict Content Security Policy has one place to
 * check. The text contains only Braid's own names and numbers, never names from the user's program.
 */

/**
 * The strict function `(...parameters) => { body }`, with the entries of `environment` as constants in scope. The
 * caller guarantees that the text has type F.
 */
export function compileFunction<F>(
  parameters: readonly string[],
  body: string,
  environment: Readonly<Record<string, unknown>>,
): F {
  const names = Object.keys(environment);
  const text = `"use strict";\nreturn function generated(${parameters.join(", ")}) {\n${body}\n};`;
  // oxlint-disable-next-line typescript/no-implied-eval -- this file exists to do it in one place
  const make = new Function(...names, text) as (...values: readonly unknown[]) => F;
  return make(...names.map((name) => environment[name]));
}
