/** The names to the left of the rows. A click on a rank folds or unfolds its rows. */
import type { TimelineData } from "../data/timeline-data.ts";
import { bytesText } from "../../support/wording.ts";
import type { TimelineRows } from "../view/rows.ts";
import { make } from "./dom.ts";

export interface Gutter {
  readonly element: HTMLElement;
  readonly update: (data: TimelineData, rows: TimelineRows, collapsed: ReadonlySet<number>) => void;
}

export function createGutter(toggle: (rank: number) => void): Gutter {
  const element = make("div", { class: "br-gutter" });
  return {
    element,
    update: ({ runs }, { rows }, collapsed) => {
      const focused = document.activeElement?.getAttribute("data-rank");
      element.replaceChildren(
        ...rows.map((row) => {
          const label = make("div", { class: `br-label br-label-${row.kind}` });
          label.style.top = `${row.y}px`;
          label.style.height = `${row.height}px`;
          if (row.kind === "rank") {
            const isOpen = !collapsed.has(row.rank);
            const button = make("button", {
              type: "button",
              class: "br-fold",
              text: `rank ${row.rank}`,
              "aria-expanded": String(isOpen),
              "data-rank": String(row.rank),
            });
            button.addEventListener("click", () => {
              toggle(row.rank);
            });
            label.append(button);
          } else if (row.kind === "memory") {
            const curve = runs.at(-1)?.memory.find(({ rank }) => rank === row.rank);
            label.append(make("span", { text: "memory" }), make("small", { text: bytesText(curve?.peak ?? 0) }));
            label.title = "Bytes in use on the device; dashed: inputs and outputs.";
          } else {
            label.append(make("span", { text: row.label }));
            label.title = row.label;
            if (runs.length > 1) label.append(make("small", { text: runs[row.run]?.name ?? "" }));
          }
          return label;
        }),
      );
      if (focused !== undefined && focused !== null) {
        element.querySelector<HTMLElement>(`[data-rank="${focused}"]`)?.focus();
      }
    },
  };
}
