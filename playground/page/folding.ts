/** Folds what a program begins with, its comment and long imports, into a line each, so that the program is in view. */
import { codeFolding, foldEffect, unfoldCode } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import { type EditorView, keymap } from "@codemirror/view";

/** Characters that fit into a line of the editor. */
const mostCharacters = 44;

export const folding: Extension = [
  keymap.of([{ key: "Ctrl-Alt-]", run: unfoldCode }]),
  codeFolding({
    preparePlaceholder: ({ doc }, { from, to }) => briefly(doc.sliceString(from, to)),
    placeholderDOM: (_, onclick, words) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "cm-folded";
      button.title = "Show all of it (Ctrl Alt ])";
      // Tab goes from the text on, not to this.
      button.tabIndex = -1;
      button.textContent = String(words);
      button.onclick = onclick;
      return button;
    },
  }),
];

/** Texts of several lines at the start: of a comment, and between the braces of an import. */
export function foldStart(view: EditorView): void {
  const text = view.state.doc.toString();
  const found = [/^(\s*\/\*)([^]*?\n[^]*?)\*\//u, /^(import \{)(\n[^}]*)\} from/mu].flatMap((pattern) => {
    const match = pattern.exec(text);
    const [, before = "", inside = ""] = match ?? [];
    const from = (match?.index ?? 0) + before.length;
    return match === null ? [] : [foldEffect.of({ from, to: from + inside.length })];
  });
  view.dispatch({ effects: found });
}

/** The first words of a comment, or how many names are imported. */
function briefly(text: string): string {
  if (text.startsWith("\n") && !text.includes("*")) return ` ${text.match(/\w+/gu)?.length ?? 0} names `;
  const words = text.replaceAll(/^\*|\s*\n\s*\*?\s*/gu, " ").trim();
  if (words.length <= mostCharacters) return ` ${words} `;
  return ` ${words.slice(0, mostCharacters).replace(/\W+\w*$/u, "")} … `;
}
