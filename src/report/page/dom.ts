/** Makes elements, and adds style sheets. */
interface Attributes {
  readonly class?: string;
  readonly text?: string;
  readonly title?: string;
  readonly [name: `aria-${string}` | `data-${string}`]: string;
  readonly role?: string;
  readonly scope?: string;
  readonly tabindex?: string;
  readonly type?: string;
}

export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  { text, ...attributes }: Attributes = {},
  ...children: readonly (Node | string)[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  element.append(...children);
  return element;
}

/** Adds a style sheet to the document, unless it is there. */
export function addStyle(name: string, text: string): void {
  const id = `br-style-${name}`;
  if (document.getElementById(id) !== null) return;
  const style = make("style", { text });
  style.id = id;
  document.head.append(style);
}
