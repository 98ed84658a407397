/** Messages between the lines of an editor: each stands under the line that it is about. */
import { type Extension, type Range, StateEffect, StateField } from "@codemirror/state";
import { Decoration, type DecorationSet, EditorView, WidgetType } from "@codemirror/view";

export interface LineMark {
  /** From 1; 0 is above the first line. */
  readonly line: number;
  /** From 1; null marks the whole line. */
  readonly column: number | null;
  readonly severity: "error" | "warning" | "info";
  readonly message: string;
  /** An edit that mends it. */
  readonly fix: { readonly label: string; readonly apply: () => void } | null;
}

export const showMessages = StateEffect.define<readonly LineMark[]>();

class Message extends WidgetType {
  readonly mark: LineMark;
  constructor(mark: LineMark) {
    super();
    this.mark = mark;
  }
  override eq({ mark: { message, severity, fix } }: Message): boolean {
    return message === this.mark.message && severity === this.mark.severity && fix?.label === this.mark.fix?.label;
  }
  override toDOM(): HTMLElement {
    const { message, severity, fix } = this.mark;
    const holder = document.createElement("div");
    holder.className = "cm-message-row";
    const element = document.createElement("div");
    element.className = `cm-message ${severity}`;
    element.setAttribute("role", "note");
    holder.append(element);
    const [first = "", ...rest] = message.split("\n");
    element.append(block("strong", first), ...rest.map((line) => block("span", line)));
    if (fix !== null) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = fix.label;
      button.onclick = fix.apply;
      element.append(button);
    }
    return holder;
  }
  override ignoreEvent(): boolean {
    return true;
  }
}

function block(name: "strong" | "span", text: string): HTMLElement {
  const element = document.createElement(name);
  element.textContent = text;
  return element;
}

export const lineMessages: Extension = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update: (set, { effects, state: { doc }, changes }) => {
    for (const effect of effects) {
      if (!effect.is(showMessages)) continue;
      const shown = effect.value.map((mark): Range<Decoration> => {
        const isFirst = mark.line < 1;
        const widget = Decoration.widget({ widget: new Message(mark), block: true, side: isFirst ? -1 : 1 });
        return widget.range(isFirst ? 0 : doc.line(Math.min(mark.line, doc.lines)).to);
      });
      return Decoration.set(shown, true);
    }
    return set.map(changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});
