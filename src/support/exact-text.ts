/** JSON that differs for all values of ops that differ, also for integers of 64 bits, NaN and infinities. */
export function exactText(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === "bigint" || (typeof part === "number" && !Number.isFinite(part)) ? `${part} exactly` : part,
  );
}
