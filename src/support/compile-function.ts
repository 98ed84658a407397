/**
 * The only place where generated code becomes a function, so that a page with a strict Content Security Policy has one
 * place to check. The text is always Braid's own: names and numbers of the user's program never enter it as text.
 */

/**
 * The function `(...parameters) => { body }`, strict, that sees the entries of `environment` as constants.
 * The caller answers for F fitting the text.
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
