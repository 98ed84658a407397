/**
 * Control characters as text. Names, messages and headers come from programs and data files: on a terminal, their
 * control characters would move the cursor, hide text or rename the window, and marks of direction would reorder it.
 */

/** All of them as `\u001b`, which JSON reads back; line ends and tabs stay. */
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
