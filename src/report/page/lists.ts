/** Tables and findings, whose rows select what they are about in the timeline. */
import type { FindingData, Link, LinkedTable } from "../data/report-data.ts";
import { make } from "./dom.ts";

type OnLink = (link: Link) => void;

export function linkedTable({ title, note, isFolded, columns, rows }: LinkedTable, onLink: OnLink): HTMLElement {
  const head = make(
    "tr",
    {},
    ...columns.map(({ label, numeric }) =>
      make("th", { scope: "col", text: label, class: numeric === true ? "br-number" : "" }),
    ),
  );
  const body = rows.map(({ cells, note: more, link }) => {
    const row = make("tr");
    for (const [i, text] of cells.entries()) {
      const cell = make(i === 0 ? "th" : "td", i === 0 ? { scope: "row" } : {});
      if (columns[i]?.numeric === true) cell.className = "br-number";
      const isCode = columns[i]?.isCode === true;
      cell.append(i === 0 && !isCode ? linked(link, text, onLink) : make(isCode ? "code" : "span", { text }));
      if (i === 0 && more !== "") cell.append(make("span", { class: "br-note", text: more }));
      row.append(cell);
    }
    return row;
  });
  const table = make(
    "div",
    { class: "br-wide", tabindex: "0", role: "region", "aria-label": title },
    make("table", {}, make("thead", {}, head), make("tbody", {}, ...body)),
  );
  return make(
    "section",
    { class: "br-panel" },
    make("h2", { text: title }),
    make("p", { class: "br-note", text: note }),
    ...(rows.length === 0
      ? []
      : [
          isFolded === true ? make("details", {}, make("summary", { text: `Show ${rows.length} rows` }), table) : table,
        ]),
  );
}

/** A button with the link, or plain text where there is nothing to select. */
function linked(link: Link, text: string, onLink: OnLink): HTMLElement {
  if (link.kind === "nothing") return make("span", { text });
  const button = make("button", {
    type: "button",
    class: "br-link",
    text,
    "aria-pressed": "false",
    "data-link": JSON.stringify(link),
    title: "Show it in the timeline",
  });
  button.addEventListener("click", () => {
    onLink(link);
  });
  return button;
}

export function findingList(findings: readonly FindingData[], onLink: OnLink): HTMLElement {
  return make(
    "section",
    { class: "br-panel" },
    make("h2", { text: "Findings" }),
    ...findings.map(({ severity, code, message, fix, text, link, replay }) => {
      const article = make(
        "article",
        { class: `br-finding br-${severity}` },
        make("h3", {}, make("code", { text: code }), " ", linked(link, message, onLink)),
        ...(fix === null ? [] : [make("p", { class: "br-fix" }, make("strong", { text: "Fix" }), ` ${fix}`)]),
        make("pre", { tabindex: "0", text }),
      );
      if (replay !== null) {
        article.append(
          make(
            "details",
            {},
            make("summary", { text: "An interleaving that shows it" }),
            make("p", {}, "Save it as order.txt and run ", make("code", { text: replay.command })),
            make("pre", { tabindex: "0", text: replay.interleaving }),
          ),
        );
      }
      return article;
    }),
  );
}
