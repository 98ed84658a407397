/** The report page: verdict, timeline, tables, findings and host programs, linked with each other. */
import { at } from "../../support/invariant.ts";
import type { FindingData, ReportLink, LinkedTable, ReportData } from "../data/report-data.ts";
import type { SliceRef, TimelineData } from "../data/timeline-data.ts";
import { sliceKinds } from "../view/visible-bars.ts";
import { kindLabels } from "../view/describe.ts";
import type { Selected } from "../view/selection.ts";
import { addStyle, make } from "./dom.ts";
import { createHostPane, type LinePlace } from "./host-pane.ts";
import { mountTimeline } from "./mount-timeline.ts";
import style from "./report.css";
import timelineStyle from "./timeline.css";
import { swatch } from "./tip.ts";

export function mountReport(element: HTMLElement, data: ReportData): void {
  const root = make("div", { class: "br-report" });
  // The colours of both, also where there is no timeline.
  addStyle("timeline", timelineStyle);
  addStyle("report", style);
  element.append(root);
  let view = 0;
  /** The link whose rows are marked as pressed, as JSON; links by their JSON. */
  let chosen: string | null = null;
  const links = new Map<string, Selected>();
  const timelineData = () => at(data.views, view).timeline;

  const issuing = new Set(
    data.views.flatMap(({ timeline: { statements } }) => statements.map((each) => `${each.host} ${each.line}`)),
  );
  const issues = ({ host: text, line }: LinePlace): boolean => issuing.has(`${text} ${line}`);
  const host = createHostPane(data.hosts, issues, {
    // Findings name its lines.
    isOpen: data.findings.length > 0,
    onHover: (place) => {
      timeline?.highlight(place === null ? linkOf(chosen) : { kind: "line", ...place }, false);
    },
    onPick: (place) => {
      choose({ kind: "line", ...place }, true);
    },
  });
  const holder = make("div", { class: "br-holder" });
  const clear = make("button", { type: "button", text: "Clear highlight" });
  clear.hidden = true;
  clear.addEventListener("click", () => {
    choose(null, false);
  });
  const tables = make("div", { class: "br-tables" });
  const findings = make("div");
  const wideTables = make("div");
  const hasTimeline = data.views.some(({ timeline: { runs } }) => runs.some(({ tracks }) => tracks.length > 0));
  const pictures = hasTimeline ? [timelineCard()] : [];
  root.append(header(data), ...pictures, findings, tables, wideTables, host.element, footer(data));
  const timeline = hasTimeline
    ? mountTimeline(holder, timelineData(), {
        keys: "page",
        onHover: (ref) => {
          host.mark(placeOf(ref));
        },
        onPick: (ref) => {
          const place = placeOf(ref);
          if (place !== null) host.reveal(place);
        },
        onClear: () => {
          choose(null, false);
        },
      })
    : null;
  renderTables();

  function timelineCard(): HTMLElement {
    const fitAll = make("button", { type: "button", text: "Show all" });
    fitAll.addEventListener("click", () => timeline?.fit());
    const bar = make("div", { class: "br-bar" }, make("h2", { text: "Timeline" }));
    if (data.views.length > 1) {
      const picker = make("select", { "aria-label": "What the timeline shows" });
      for (const [i, { name }] of data.views.entries()) {
        const option = make("option", { text: name });
        option.value = String(i);
        picker.append(option);
      }
      picker.addEventListener("change", () => {
        setView(Number(picker.value));
      });
      picker.dataset["views"] = "true";
      bar.append(picker);
    }
    bar.append(legend(data.views.map(({ timeline: each }) => each)), make("span", { class: "br-grow" }), clear, fitAll);
    return make("section", { class: "br-panel", "aria-label": "Timeline" }, bar, holder, hints());
  }

  function setView(next: number): void {
    if (next === view) return;
    view = next;
    const picker = root.querySelector<HTMLSelectElement>("select[data-views]");
    if (picker !== null) picker.value = String(next);
    timeline?.setData(timelineData());
    const { marked } = at(data.views, view);
    if (marked.length > 0) timeline?.highlight({ kind: "commands", view, commands: marked }, false);
  }

  function choose(selected: Selected | null, zooms: boolean): void {
    const text = selected === null ? null : JSON.stringify(selected);
    if (selected !== null && text !== null) links.set(text, selected);
    chosen = text === chosen ? null : text;
    const link = linkOf(chosen);
    if (link?.kind === "commands") setView(link.view);
    timeline?.highlight(link, zooms);
    clear.hidden = chosen === null;
    for (const row of root.querySelectorAll<HTMLElement>("[data-link]")) {
      row.setAttribute("aria-pressed", String(row.dataset["link"] === chosen));
      row.closest("tr, article")?.classList.toggle("br-chosen", row.dataset["link"] === chosen);
    }
    if (zooms && chosen !== null) holder.scrollIntoView({ block: "nearest" });
  }

  function linkOf(text: string | null): Selected | null {
    if (text === null) return null;
    return links.get(text) ?? null;
  }

  function renderTables(): void {
    const onLink = (link: ReportLink): void => {
      choose(link, true);
    };
    if (data.findings.length > 0) findings.append(findingList(data.findings, onLink));
    for (const table of data.tables) (table.isWide === true ? wideTables : tables).append(linkedTable(table, onLink));
  }

  function placeOf(ref: SliceRef | null): LinePlace | null {
    if (ref === null) return null;
    const { runs, works, statements } = timelineData();
    const work = at(works, at(at(runs, ref.run).slices.work, ref.slice));
    const { host: text, line } = at(statements, work.statement);
    return line === null ? null : { host: text, line };
  }
}

function header({ title, verdict, facts }: ReportData): HTMLElement {
  const list = make("dl", { class: "br-facts" });
  for (const { label, value, note, isBad } of facts) {
    list.append(
      make(
        "div",
        isBad === true ? { class: "br-bad-fact" } : {},
        make("dt", { text: label }),
        make("dd", { text: value }),
        make("dd", { class: "br-note", text: note }),
      ),
    );
  }
  return make(
    "header",
    {},
    make("p", { class: "br-file", text: title }),
    make("h1", { class: `br-verdict br-${verdict.tone}`, text: verdict.text }),
    ...(verdict.note === undefined ? [] : [make("p", { class: "br-caveat", text: verdict.note })]),
    list,
  );
}

function footer({ notes }: ReportData): HTMLElement {
  return make("footer", {}, ...notes.map((text) => make("p", { text })));
}

function hints(): HTMLElement {
  const keys: readonly (readonly [string, string])[] = [
    ["W S", "zoom"],
    ["A D ← →", "move"],
    [", .", "previous, next slice"],
    ["F", "fit highlight"],
    ["0", "show all"],
    ["Esc", "clear"],
  ];
  return make(
    "p",
    { class: "br-hints" },
    "Ctrl + wheel zooms, drag moves. ",
    ...keys.flatMap(([key, text]) => [make("kbd", { text: key }), ` ${text} `]),
  );
}

// What the colours and lines of timelines stand for.

/** Only what one of them shows. */
export function legend(timelines: readonly TimelineData[]): HTMLElement {
  const used = new Set(timelines.flatMap(({ works }) => works.map(({ kind }) => kind)));
  const runs = timelines.flatMap((timeline) => timeline.runs);
  const item = (kind: string, text: string): HTMLElement => make("li", {}, swatch(kind), text);
  return make(
    "ul",
    { class: "br-legend", "aria-label": "Colours" },
    ...sliceKinds.filter((kind) => used.has(kind)).map((kind) => item(kind, kindLabels[kind])),
    ...(runs.some(({ critical }) => critical.length > 0) ? [item("critical", "critical path")] : []),
    ...(runs.some(({ idle }) => idle.length > 0) ? [item("idle", "exposed")] : []),
  );
}

// Tables and findings, whose rows select what they are about in the timeline.

type OnLink = (link: ReportLink) => void;

function linkedTable({ title, note, isFolded, columns, rows }: LinkedTable, onLink: OnLink): HTMLElement {
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
      const label = columns[i]?.label ?? "";
      const cell = make(i === 0 ? "th" : "td", i === 0 ? { scope: "row" } : { "data-label": label });
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
function linked(link: ReportLink, text: string, onLink: OnLink): HTMLElement {
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

function findingList(findings: readonly FindingData[], onLink: OnLink): HTMLElement {
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
