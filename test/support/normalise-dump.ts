/**
 * Brings dumps to one form: numbers that depend on how many expressions and values a compiler made inside are replaced.
 * Communications are numbered in order of their first mention; a derived index (`i84`) becomes its definition.
 */
export interface NormalDump {
  /** The container, without the index definitions. */
  readonly text: string;
  /** The definitions of derived indices, expanded. */
  readonly definitions: ReadonlySet<string>;
}

const numbered = /(?<kind>P2PCommunication|Wait Communication|Communication|EndCoalescing) (?<id>\d+)/gu;

export function normaliseDump(dump: string): NormalDump {
  const [text = "", section = ""] = dump.trim().split("\n\nIndex definitions:\n");
  const definitions = new Map(
    section
      .split("\n")
      .filter((line) => line.trim() !== "")
      .map((line): [string, string] => {
        const [name = "", value = ""] = line.trim().replace(/;$/u, "").split(" = ");
        return [name, value];
      }),
  );
  const expand = (value: string): string =>
    value.replaceAll(/\bi\d+\b/gu, (name) => {
      const definition = definitions.get(name);
      return definition === undefined ? name : `( ${expand(definition)} )`;
    });
  const numbers = new Map<string, number>();
  const renumbered = text.replaceAll(numbered, (_, kind: string, id: string) => {
    const number = numbers.get(id) ?? numbers.size;
    numbers.set(id, number);
    return `${kind} #${number}`;
  });
  return {
    text: renumbered
      .replaceAll(/(?<=index = |peer=)i\d+/gu, expand)
      .split("\n")
      .map((line) => line.trimEnd())
      .join("\n"),
    definitions: new Set([...definitions.keys()].map(expand)),
  };
}
