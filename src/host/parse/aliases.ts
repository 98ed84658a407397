/**
 * The aliases of a container, which dumps before 2025-05 print after the statements: tensors that share the memory of
 * another, such as an output that is written in place of an input. Each is read as the tensor whose memory it has.
 *
 *   Aliases:{
 *     T1_g_float[iS2{4}, iS3{8}] -> T0_g_float[iS0{4}, iS1{8}]
 *   }
 */
import { failExpected, type Scanner } from "../syntax/text/scanner.ts";
import { failAt, type Source } from "../syntax/text/source.ts";

const section = /^[^\S\n]*Aliases:\s*\{(?:\s*\}|(?<list>(?:\n[^\S\n]*(?:T\d[^\n]*)?)+?)\n[^\S\n]*\})/mu;
const pair = /T(?<alias>\d{1,9})(?!\d)[^\n]*? -> T(?<tensor>\d{1,9})(?!\d)/gu;

/** For each alias the number of the tensor whose memory it has. */
export function readAliases(source: Source): ReadonlyMap<number, number> {
  const aliases = new Map<number, number>();
  const found = section.exec(source.text);
  for (const { index, groups = {} } of (found?.groups?.["list"] ?? "").matchAll(pair)) {
    const [alias, tensor] = [Number(groups["alias"]), Number(groups["tensor"])];
    let owner = tensor;
    for (let next = aliases.get(owner); next !== undefined; next = aliases.get(owner)) owner = next;
    if (owner === alias) failCircle(source, (found?.index ?? 0) + index, alias);
    aliases.set(alias, owner);
  }
  // One that became an alias later shares the memory of another.
  return new Map([...aliases].map(([alias, tensor]) => [alias, aliases.get(tensor) ?? tensor]));
}

/** Steps over the section if it stands here. */
export function skipAliases(scanner: Scanner): boolean {
  const { text, position } = scanner;
  if (!text.startsWith("Aliases:", position)) return false;
  const found = section.exec(text.slice(position));
  if (found?.index !== 0) failExpected(scanner, '"Aliases:{", pairs of tensors with "->" between, and "}"');
  scanner.position = position + found[0].length;
  return true;
}

function failCircle(source: Source, position: number, alias: number): never {
  failAt(source, position, {
    code: "dump-contradiction",
    message: `T${alias} has the memory of itself`,
    expected: "aliases of other tensors",
    help: "correct the aliases",
  });
}
