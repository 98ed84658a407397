/** Sizes for a dump whose extents are symbolic, so that it can be looked at before the user knows them. */
import type { Diagnostic } from "../../src/diagnostics/diagnostic.ts";

/** A multiple of usual numbers of devices and chunks. */
const anySize = 64;

/** The text of the option `sizes` that gives each missing extent one; null for other diagnostics. */
export function sizesFor({ code, message }: Diagnostic, given: string | undefined): string | null {
  const names = code === "size-missing" ? /^(.+) ha(?:s|ve) no size$/u.exec(message)?.[1]?.split(", ") : undefined;
  if (names === undefined) return null;
  return [...(given === undefined ? [] : [given]), ...names.map((name) => `${name}=${anySize}`)].join(",");
}
