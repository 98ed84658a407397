/**
 * A timeline as a component: the streams of all ranks on a canvas, with zoom, keys, tooltips, dependence arrows and
 * highlights. It draws `TimelineData` and knows nothing of the page around it.
 */
import { axisTop } from "d3-axis";
import { type ScaleLinear, scaleLinear } from "d3-scale";
import { select } from "d3-selection";
import { zoom, zoomIdentity, zoomTransform } from "d3-zoom";
import { at } from "../../support/invariant.ts";
import type { SliceRef, TimelineData } from "../data/timeline-data.ts";
import { describeSlice, idleText } from "../view/describe.ts";
import { type SliceArrow, sliceAt } from "../view/find.ts";
import { rowAt, timelineRows, tickText } from "../view/rows.ts";
import { type Selected, type Selection, selectionOf } from "../view/selection.ts";
import type { PixelScale } from "../view/visible-bars.ts";
import { addStyle, make } from "./dom.ts";
import { drawScene } from "./draw-scene.ts";
import { prepare } from "./scene.ts";
import { createGutter } from "./gutter.ts";
import { createPixelRow } from "./pixel-row.ts";
import { hatching, themeOf } from "./theme.ts";
import style from "./timeline.css";
import { createTip, sliceCard } from "./tip.ts";

export interface TimelineOptions {
  /** Where keys are heard: on the timeline while it has the focus (default), or on the whole page. */
  readonly keys?: "focused" | "page";
  /** Called with null when the pointer leaves slices. */
  readonly onHover?: (slice: SliceRef | null) => void;
  /** A slice was clicked or reached by keys; null for a click beside slices. */
  readonly onPick?: (slice: SliceRef | null) => void;
  /** Escape has ended the highlight. */
  readonly onClear?: () => void;
}

export interface TimelineView {
  /** Shows other data, from its start to its end and without a highlight. */
  readonly setData: (data: TimelineData) => void;
  /** Highlights what a link stands for, and zooms to it if `zooms`. Null ends the highlight. */
  readonly highlight: (selected: Selected | null, zooms: boolean) => void;
  /** Shows the time from `from` to `to`. */
  readonly show: (from: number, to: number) => void;
  /** Shows all of it. */
  readonly fit: () => void;
  readonly destroy: () => void;
}

const axisHeight = 26;
/** Pixels within which a slice counts as under the pointer. */
const reach = 3;
/** The shortest stretch of time that fills the view: a nanosecond of milliseconds, a step. */
const closest = { milliseconds: 1e-5, steps: 4 } as const;

/** What each press or repeat of a key changes: the zoom by a factor, the view by a part of its width. */
const [keyZoom, keyMove] = [1.15, 0.1];

const label =
  "Timeline of the streams of every rank. W and S zoom, A and D or the arrow keys move, comma and period go from slice to slice, F fits the highlight, 0 shows everything.";

export function mountTimeline(element: HTMLElement, given: TimelineData, options: TimelineOptions = {}): TimelineView {
  addStyle("timeline", style);
  const root = make("div", { class: "br-timeline" });
  const axis = make("div", { class: "br-axis", "aria-hidden": "true" });
  const canvas = make("canvas", { class: "br-canvas", tabindex: "0", role: "application", "aria-label": label });
  const spoken = make("div", { class: "br-spoken", role: "status" });
  const gutter = createGutter((rank) => {
    collapsed = new Set(collapsed);
    if (!collapsed.delete(rank)) collapsed.add(rank);
    layOut();
  });
  const content = make("div", { class: "br-content" }, gutter.element, canvas);
  const scroll = make("div", { class: "br-scroll" }, content);
  root.append(axis, scroll, spoken);
  element.append(root);
  const tip = createTip(root);
  const pixelRow = createPixelRow();
  const context = canvas.getContext("2d");
  const axisGroup = select(axis)
    .append("svg")
    .attr("height", axisHeight)
    .append("g")
    .attr("transform", `translate(0, ${axisHeight - 1})`);

  let collapsed = new Set<number>();
  let shown = prepare(given);
  let rows = timelineRows(given, collapsed);
  let look = lookOf();
  let selection: Selection | null = null;
  let hovered: SliceRef | null = null;
  let picked: SliceRef | null = null;
  let arrows: readonly SliceArrow[] = [];
  let width = 1;
  let frame = 0;

  const behavior = zoom<HTMLCanvasElement, unknown>()
    .filter((event: Event) => {
      if (event instanceof WheelEvent) return event.ctrlKey || event.metaKey;
      return !(event instanceof MouseEvent) || event.button === 0;
    })
    .on("zoom", () => {
      draw();
    });
  const target = select(canvas).call(behavior).on("dblclick.zoom", null);

  const base = (): ScaleLinear<number, number> => scaleLinear([0, shown.end], [0, width]);
  const pixels = (): PixelScale => {
    const [from = 0, to = 1] = zoomTransform(canvas).rescaleX(base()).domain();
    return { from, scale: width / (to - from), width };
  };

  const resized = new ResizeObserver(() => {
    resize();
  });
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const recolor = (): void => {
    look = lookOf();
    draw();
  };

  canvas.addEventListener("pointermove", (event) => {
    hover(refAt(event.offsetX, event.offsetY), event);
  });
  canvas.addEventListener("pointerleave", () => {
    hover(null, null);
  });
  canvas.addEventListener("click", (event) => {
    pick(refAt(event.offsetX, event.offsetY));
  });
  canvas.addEventListener("dblclick", (event) => {
    const ref = refAt(event.offsetX, event.offsetY);
    if (ref === null) return;
    const { start, duration } = at(shown.data.runs, ref.run).slices;
    const [from, length] = [at(start, ref.slice), at(duration, ref.slice)];
    show(from - length / 2, from + 1.5 * length);
  });
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (event.ctrlKey || event.metaKey) return;
      const sideways = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
      if (Math.abs(sideways) < Math.abs(event.deltaY) && !event.shiftKey) return;
      event.preventDefault();
      behavior.translateBy(target, -sideways / zoomTransform(canvas).k, 0);
    },
    { passive: false },
  );
  const keysOn: HTMLElement | Document = options.keys === "page" ? document : root;
  const onKeyDown = (event: Event): void => {
    if (event instanceof KeyboardEvent && isForTimeline(event) && pressed(event)) event.preventDefault();
  };
  keysOn.addEventListener("keydown", onKeyDown);
  scroll.addEventListener("scroll", draw);
  scheme.addEventListener("change", recolor);
  resized.observe(scroll);
  setData(given);

  return {
    setData,
    highlight,
    show,
    fit,
    destroy: () => {
      resized.disconnect();
      cancelAnimationFrame(frame);
      keysOn.removeEventListener("keydown", onKeyDown);
      scheme.removeEventListener("change", recolor);
      root.remove();
    },
  };

  function setData(data: TimelineData): void {
    shown = prepare(data);
    collapsed = data.ranks.length > 16 ? new Set(data.ranks.slice(4).map(({ rank }) => rank)) : new Set();
    [selection, hovered, picked, arrows] = [null, null, null, []];
    look = lookOf();
    layOut();
    resize();
    fit();
  }

  function lookOf() {
    const theme = themeOf(root);
    const { causes } = shown;
    return { theme, patterns: context === null ? [] : causes.map((_, i) => hatching(context, theme.idle, i)) };
  }

  function layOut(): void {
    rows = timelineRows(shown.data, collapsed);
    content.style.height = `${rows.height}px`;
    gutter.update(shown.data, rows, collapsed);
    resize();
  }

  function resize(): void {
    const before = pixels();
    const full = width <= 1 || zoomTransform(canvas).k === 1;
    const until = before.from + before.width / before.scale;
    width = Math.max(1, content.clientWidth - gutter.element.offsetWidth);
    const height = Math.max(1, Math.min(scroll.clientHeight, rows.height));
    const ratio = devicePixelRatio;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    axis.style.marginLeft = `${gutter.element.offsetWidth}px`;
    const closestScale = Math.max(1, shown.end / closest[shown.data.unit]);
    behavior
      .extent([
        [0, 0],
        [width, height],
      ])
      .translateExtent([
        [0, -Infinity],
        [width, Infinity],
      ])
      .scaleExtent([1, closestScale]);
    if (full) fit();
    else show(before.from, until);
  }

  function draw(): void {
    if (frame !== 0) return;
    frame = requestAnimationFrame(() => {
      frame = 0;
      drawNow();
    });
  }

  function drawNow(): void {
    if (context === null) return;
    const view = pixels();
    const ratio = devicePixelRatio;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    drawScene(context, {
      ...shown,
      ...look,
      pixelRow,
      rows,
      pixels: view,
      scrolled: scroll.scrollTop,
      height: canvas.height / ratio,
      selection,
      hovered,
      picked,
      arrows,
    });
    const until = view.from + view.width / view.scale;
    const count = Math.max(2, width / 110);
    const ticks = axisTop(scaleLinear([view.from, until], [0, width]))
      .ticks(count)
      .tickFormat((time) => tickText(shown, Number(time), (until - view.from) / count));
    axisGroup.call(ticks);
    root.dataset["from"] = String(view.from);
    root.dataset["until"] = String(until);
  }

  function refAt(x: number, y: number): SliceRef | null {
    const row = rowAt(rows, y + scroll.scrollTop);
    if (row?.kind !== "track" || row.track === null) return null;
    const { from, scale } = pixels();
    const { slices } = at(shown.data.runs, row.run);
    const slice = sliceAt(slices, row.track, from + x / scale, reach / scale);
    return slice < 0 ? null : { run: row.run, slice };
  }

  function hover(ref: SliceRef | null, event: MouseEvent | null): void {
    if (ref?.run !== hovered?.run || ref?.slice !== hovered?.slice) {
      hovered = ref;
      arrows = ref === null ? [] : at(shown.arrowsOf, ref.run)(ref.slice);
      options.onHover?.(ref);
      draw();
    }
    const idle = ref === null && event !== null ? idleAt(event.offsetX, event.offsetY) : null;
    if (event === null || (ref === null && idle === null)) tip.hide();
    else if (ref !== null) {
      tip.show(sliceCard(describeSlice(shown.data, ref.run, ref.slice)), event.clientX, event.clientY);
    } else if (idle !== null) tip.show(make("div", { text: idle }), event.clientX, event.clientY);
  }

  /** What is exposed at a point of a rank's head. */
  function idleAt(x: number, y: number): string | null {
    const row = rowAt(rows, y + scroll.scrollTop);
    const { from, scale } = pixels();
    return row?.kind === "rank" ? idleText(shown.data, row.rank, from + x / scale) : null;
  }

  function pick(ref: SliceRef | null): void {
    picked = ref;
    if (ref !== null) {
      const { title, figures } = describeSlice(shown.data, ref.run, ref.slice);
      spoken.textContent = `${title}; ${figures.map((figure) => figure.join(" ")).join("; ")}`;
    }
    options.onPick?.(ref);
    draw();
  }

  function highlight(selected: Selected | null, zooms: boolean): void {
    selection = selected === null || selected.kind === "nothing" ? null : selectionOf(shown.data, selected);
    if (zooms && selection?.extent !== null && selection !== null) {
      const [from, to] = selection.extent;
      const margin = Math.max((to - from) / 12, shown.end / 1e6);
      show(from - margin, to + margin);
    }
    draw();
  }

  function show(from: number, to: number): void {
    const [begin, until] = [Math.max(0, from), Math.min(shown.end, to)];
    const scale = Math.min(
      Math.max(1, shown.end / Math.max(until - begin, Number.MIN_VALUE)),
      at(behavior.scaleExtent(), 1),
    );
    behavior.transform(target, zoomIdentity.scale(scale).translate((-begin * width) / shown.end, 0));
    draw();
  }

  function fit(): void {
    behavior.transform(target, zoomIdentity);
    draw();
  }

  function pressed(event: KeyboardEvent): boolean {
    const key = event.key.toLowerCase();
    switch (key) {
      case "w":
      case "s":
        behavior.scaleBy(target, key === "w" ? keyZoom : 1 / keyZoom);
        return true;
      case "a":
      case "arrowleft":
        move(-keyMove);
        return true;
      case "d":
      case "arrowright":
        move(keyMove);
        return true;
      case "f":
        if (selection?.extent !== undefined && selection.extent !== null) show(...selection.extent);
        return true;
      case "0":
      case "home":
        fit();
        return true;
      case ",":
        step(-1);
        return true;
      case ".":
        step(1);
        return true;
      case "escape":
        highlight(null, false);
        pick(null);
        options.onClear?.();
        return true;
      default:
        return false;
    }
  }

  function move(part: number): void {
    behavior.translateBy(target, (-part * width) / zoomTransform(canvas).k, 0);
  }

  /** Goes to the next slice of the track, or to the first one in view. */
  function step(by: 1 | -1): void {
    const run = picked?.run ?? 0;
    const { tracks, slices } = at(shown.data.runs, run);
    const slice = picked === null ? (tracks[0]?.first ?? -1) : picked.slice + by;
    const track = tracks.find(({ first, count }) => slice >= first && slice < first + count);
    if (track === undefined) return;
    if (picked !== null && (picked.slice < track.first || picked.slice >= track.first + track.count)) return;
    pick({ run, slice });
    const { from, scale } = pixels();
    const until = from + width / scale;
    const [start, end] = [at(slices.start, slice), at(slices.start, slice) + at(slices.duration, slice)];
    if (start >= from && end <= until) return;
    const half = Math.max((until - from) / 2, end - start);
    show((start + end) / 2 - half, (start + end) / 2 + half);
  }
}

function isForTimeline({ target, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean {
  if (ctrlKey || metaKey || altKey) return false;
  return !(target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]"));
}
