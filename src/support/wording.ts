/**
 * The wording of messages: plurals, articles, and control characters as text. Names, messages and headers come from
 * programs and data files: on a terminal, their control characters would move the cursor, hide text or rename the
 * window, and marks of direction would reorder it.
 */

/** `1 send`, `2 sends`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

/** `an Allgather`, `a Reduce`: chosen by the first letter. */
export function withArticle(noun: string): string {
  return `${/^[aeio]/i.test(noun) ? "an" : "a"} ${noun}`;
}

/** Control characters and marks of direction as `\u001b`, which JSON reads back; line ends and tabs stay. */
export function escapeControls(text: string): string {
  return text.replaceAll(/[^\P{Cc}\n\t]|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu, asText);
}

/** Those of a text that has to stay on one line: line ends and tabs, too. */
export function escapeLine(text: string): string {
  return escapeControls(text).replaceAll(/[\n\t]/gu, asText);
}

function asText(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
