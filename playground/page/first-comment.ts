/** Folds the comment with which a program begins into its first words, so that the program itself is in view. */
import { codeFolding, foldEffect, unfoldCode } from "@codemirror/language";
import type { Extension } from "@codemirror/state";
import { type EditorView, keymap } from "@codemirror/view";

/** Characters that fit into a line of the editor. */
const mostCharacters = 44;

export const commentFolding: Extension = [
  keymap.of([{ key: "Ctrl-Alt-]", run: unfoldCode }]),
  codeFolding({
    preparePlaceholder: ({ doc }, { from, to }) => firstWords(doc.sliceString(from, to)),
    placeholderDOM: (_, onclick, words) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "cm-first-comment";
      button.title = "Show the whole comment (Ctrl Alt ])";
      // Tab goes from the text on, not to this.
      button.tabIndex = -1;
      button.textContent = String(words);
      button.onclick = onclick;
      return button;
    },
  }),
];

export function foldFirstComment(view: EditorView): void {
  const [whole = "", before = "", comment = ""] = /^(\s*\/\*)([^]*?)\*\//u.exec(view.state.doc.toString()) ?? [];
  if (!comment.includes("\n")) return;
  view.dispatch({ effects: foldEffect.of({ from: before.length, to: whole.length - 2 }) });
}

function firstWords(comment: string): string {
  const text = comment.replaceAll(/^\*|\s*\n\s*\*?\s*/gu, " ").trim();
  if (text.length <= mostCharacters) return ` ${text} `;
  return ` ${text.slice(0, mostCharacters).replace(/\W+\w*$/u, "")} … `;
}
