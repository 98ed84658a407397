/** What attributes of an op hold: numbers, words, names. Pretty and generic forms spell some of them differently. */
import { at } from "../../support/invariant.ts";
import { invalidText, type Reader } from "./reader.ts";
import type { Attribute, Operation } from "./syntax/nodes.ts";

/** The first attribute that the op has of these names. */
export function attributeOf({ attributes }: Operation, ...names: readonly string[]): Attribute | null {
  for (const name of names) {
    const found = attributes.get(name);
    if (found !== undefined) return found;
  }
  return null;
}

/** The items of `[..]` and `{..}`, also inside of `<..>` and `#name<..>`. */
export function itemsIn(attribute: Attribute | null | undefined): readonly Attribute[] {
  const body = attribute?.kind === "named" ? attribute.body : attribute;
  const list = body?.kind === "group" && body.open === "<" ? body.items[0] : body;
  return list?.kind === "group" ? list.items : [];
}

/** `[0, 1]`, `array<i64: 0, 1>`, `dense<[0, 1]>`, `dense<0>`, `4`; null for another attribute. */
export function numbersIn(attribute: Attribute): readonly number[] | null {
  switch (attribute.kind) {
    case "number": {
      const value = Number(attribute.text);
      return Number.isSafeInteger(value) ? [value] : null;
    }
    case "named":
      return numbersIn(attribute.body);
    case "group": {
      const all: number[] = [];
      for (const [i, item] of attribute.items.entries()) {
        const found = i === 0 && isType(item) ? [] : numbersIn(item);
        if (found === null) return null;
        for (const each of found) all.push(each);
      }
      return all;
    }
    case "sequence": {
      // `i64: 0`
      const [, sign, value] = attribute.parts;
      return sign?.kind === "word" && sign.text === ":" && value !== undefined ? numbersIn(value) : null;
    }
    default:
      return null;
  }
}

function isType(attribute: Attribute): boolean {
  return attribute.kind === "word" && /^[su]?i\d+$/u.test(attribute.text);
}

/** The numbers of an attribute; `otherwise` if the op has none. */
export function numbers(
  reader: Reader,
  op: Operation,
  names: readonly string[],
  otherwise: readonly number[] | null = null,
): readonly number[] {
  const attribute = attributeOf(op, ...names);
  const found = attribute === null ? otherwise : numbersIn(attribute);
  if (found !== null) return found;
  return invalidText(reader, op.position, {
    message: `${op.name} has no list of numbers ${at(names, 0)}`,
    found: attribute === null ? "no such attribute" : `an attribute of another form`,
    expected: `${at(names, 0)} = [0, 1]`,
  });
}

export function number(
  reader: Reader,
  op: Operation,
  names: readonly string[],
  otherwise: number | null = null,
): number {
  const [found, ...others] = numbers(reader, op, names, otherwise === null ? null : [otherwise]);
  if (found !== undefined && others.length === 0) return found;
  return invalidText(reader, op.position, {
    message: `${op.name} has no number ${at(names, 0)}`,
    found: `${found === undefined ? 0 : others.length + 1} numbers`,
    expected: "one number",
  });
}

/** The axes of an op must exist and differ. */
export function requireAxes(reader: Reader, op: Operation, axes: readonly number[], rank: number): readonly number[] {
  if (axes.every((axis, i) => axis >= 0 && axis < rank && axes.indexOf(axis) === i)) return axes;
  return invalidText(reader, op.position, {
    message: `${op.name} names axes that its operand does not have`,
    found: `[${axes.join(", ")}] of ${rank} axes`,
    expected: `distinct axes from 0 to ${rank - 1}`,
  });
}

/** A keyword, also inside of `#stablehlo<comparison_direction LT>`. */
export function wordIn(attribute: Attribute | null): string | null {
  if (attribute?.kind === "word" || attribute?.kind === "string") return attribute.text;
  if (attribute?.kind === "symbol") return attribute.name;
  if (attribute?.kind === "named") return wordIn(attribute.body);
  if (attribute?.kind === "group") return wordIn(attribute.items[0] ?? null);
  if (attribute?.kind === "sequence") return wordIn(attribute.parts.at(-1) ?? null);
  return null;
}
