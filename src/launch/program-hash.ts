/** A short name of a Program: equal for equal Programs, on every machine. */
import { createHash } from "node:crypto";
import type { Program } from "../commands/program.ts";

/** SHA-256 of the Program's parts as JSON, the first 16 hexadecimal digits. Their order is the same on every rank. */
export function programHash(program: Program): string {
  const hash = createHash("sha256");
  for (const [name, part] of Object.entries(program)) {
    hash.update(name);
    // Parts of a list one by one: a large Program is more than one string can hold.
    for (const each of Array.isArray(part) ? part : [part]) hash.update(JSON.stringify(each, plain) ?? "");
  }
  return hash.digest("hex").slice(0, 16);
}

function plain(_: string, value: unknown): unknown {
  return value instanceof Map || value instanceof Set ? [...value] : value;
}

/** The Program without the statements that its commands come from, which never affect what they do. */
export function withoutOrigins(program: Program): Program {
  return { ...program, ranks: program.ranks.map((rank) => ({ ...rank, origins: [] })) };
}
