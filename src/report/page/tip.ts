/** The tooltip at the pointer. */
import { kindLabels, type SliceWords } from "../view/describe.ts";
import { make } from "./dom.ts";

export interface Tip {
  /** At a point of the window. */
  readonly show: (content: Node, x: number, y: number) => void;
  readonly hide: () => void;
}

export function createTip(root: HTMLElement): Tip {
  const element = make("div", { class: "br-tip", role: "tooltip" });
  element.hidden = true;
  root.append(element);
  return {
    show: (content, x, y) => {
      element.replaceChildren(content);
      element.hidden = false;
      const { width, height } = element.getBoundingClientRect();
      const left = x + 14 + width > innerWidth ? Math.max(4, x - width - 14) : x + 14;
      const top = y + 16 + height > innerHeight ? Math.max(4, y - height - 12) : y + 16;
      element.style.transform = `translate(${left}px, ${top}px)`;
    },
    hide: () => {
      element.hidden = true;
    },
  };
}

export function sliceCard({ title, kind, statement, figures }: SliceWords): HTMLElement {
  const list = make("dl", { class: "br-figures" });
  for (const [name, value] of figures) list.append(make("dt", { text: name }), make("dd", { text: value }));
  return make(
    "div",
    { class: "br-card" },
    make(
      "div",
      { class: "br-card-head" },
      swatch(kind),
      make("strong", { text: title }),
      make("span", { text: kindLabels[kind] }),
    ),
    make("code", { text: statement }),
    list,
  );
}

export function swatch(kind: string): HTMLElement {
  return make("i", { class: "br-swatch", "data-kind": kind });
}
