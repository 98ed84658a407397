/** The texts of the host programs, folded until they are asked for. A line and the slices that its statement issued point at each other. */
import { counted } from "../../support/wording.ts";
import type { HostText } from "../data/report-data.ts";
import { make } from "./dom.ts";

export interface LinePlace {
  /** An index into the texts, and a line from 1. */
  readonly host: number;
  readonly line: number;
}

export interface HostPane {
  readonly element: HTMLElement;
  /** Marks a line; none with null. */
  readonly mark: (place: LinePlace | null) => void;
  /** Shows a line, and marks it until another one is. */
  readonly reveal: (place: LinePlace) => void;
}

export function createHostPane(
  texts: readonly HostText[],
  /** Whether a line issues commands. */
  issues: (place: LinePlace) => boolean,
  {
    isOpen,
    onHover,
    onPick,
  }: {
    readonly isOpen: boolean;
    readonly onHover: (place: LinePlace | null) => void;
    readonly onPick: (place: LinePlace) => void;
  },
): HostPane {
  const bodies = texts.map(({ lines }, host) => body(lines, host));
  const holder = make("div", { class: "br-code", tabindex: "0", role: "region", "aria-label": "Host program" });
  const picker = make("select", { "aria-label": "Ranks" });
  let current = -1;
  let marked: HTMLElement | null = null;
  const show = (host: number): void => {
    const next = bodies[host];
    if (next === undefined || host === current) return;
    current = host;
    picker.value = String(host);
    holder.replaceChildren(next);
  };
  for (const [host, { ranks }] of texts.entries()) {
    const option = make("option", { text: ranksText(ranks) });
    option.value = String(host);
    picker.append(option);
  }
  picker.addEventListener("change", () => {
    show(Number(picker.value));
  });
  show(0);
  const mark = (place: LinePlace | null): void => {
    marked?.classList.remove("br-marked");
    marked = place === null ? null : lineOf(place);
    marked?.classList.add("br-marked");
  };
  const lineOf = ({ host, line }: LinePlace): HTMLElement | null =>
    bodies[host]?.querySelector<HTMLElement>(`[data-line="${line}"]`) ?? null;
  const summary = make(
    "summary",
    {},
    make("h2", { text: "Host program" }),
    make("span", { class: "br-note", text: texts.map(({ ranks }) => ranksText(ranks)).join("; ") }),
  );
  const element = make(
    "details",
    { class: "br-panel br-host" },
    summary,
    ...(texts.length > 1 ? [picker] : []),
    holder,
  );
  element.open = isOpen;
  element.hidden = texts.length === 0;
  const scrollToMarked = (): void => {
    if (marked !== null) holder.scrollTop = marked.offsetTop - holder.clientHeight / 2;
  };
  element.addEventListener("toggle", scrollToMarked);
  return {
    element,
    mark,
    reveal: (place) => {
      show(place.host);
      mark(place);
      scrollToMarked();
    },
  };

  function body(lines: readonly string[], host: number): HTMLElement {
    const list = make("div", { class: "br-lines" });
    for (const [i, text] of lines.entries()) {
      if (i === 0 && text === "") continue;
      const line = make(
        "div",
        { class: issues({ host, line: i + 1 }) ? "br-line br-issued" : "br-line", "data-line": String(i + 1) },
        make("span", { class: "br-line-number", text: String(i + 1) }),
        make("code", { text }),
      );
      list.append(line);
    }
    list.addEventListener("pointerover", (event) => {
      const place = placeOf(event.target, host);
      onHover(place);
    });
    list.addEventListener("pointerleave", () => {
      onHover(null);
    });
    list.addEventListener("click", (event) => {
      const place = placeOf(event.target, host);
      if (place !== null) onPick(place);
    });
    return list;
  }
}

/** The place of a line that issues commands. */
function placeOf(target: EventTarget | null, host: number): LinePlace | null {
  const line = target instanceof Element ? target.closest(".br-issued")?.getAttribute("data-line") : null;
  return line === null || line === undefined ? null : { host, line: Number(line) };
}

/** `all ranks alike`, `rank 2`, `ranks 0, 2`. */
function ranksText(ranks: readonly number[]): string {
  return ranks.length === 1 ? `rank ${ranks[0] ?? 0}` : `${counted(ranks.length, "rank")}: ${ranks.join(", ")}`;
}
