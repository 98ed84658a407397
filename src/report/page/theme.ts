/** The colours of the canvas: those that the style sheet gives its custom properties, in light or dark. */
import { sliceKinds } from "../view/visible-bars.ts";
import type { SliceKind } from "../data/timeline-data.ts";

export interface Theme {
  readonly kinds: { readonly [K in SliceKind]: string };
  readonly text: string;
  readonly faint: string;
  readonly line: string;
  readonly surface: string;
  readonly onSlice: string;
  readonly critical: string;
  readonly idle: string;
  readonly arrow: string;
  readonly missing: string;
  readonly memory: string;
  readonly select: string;
}

/** Reads the colours as they are for `element` now. */
export function themeOf(element: HTMLElement): Theme {
  const probe = document.createElement("span");
  element.append(probe);
  const color = (name: string): string => {
    probe.style.color = `var(--br-${name})`;
    return getComputedStyle(probe).color;
  };
  const [gemm = "", kernel = "", copy = "", transfer = "", localCopy = "", wait = "", order = "", mark = ""] =
    sliceKinds.map(color);
  const theme: Theme = {
    kinds: { gemm, kernel, copy, transfer, localCopy, wait, order, mark },
    text: color("text"),
    faint: color("faint"),
    line: color("line"),
    surface: color("surface"),
    onSlice: color("onSlice"),
    critical: color("critical"),
    idle: color("idle"),
    arrow: color("arrow"),
    missing: color("missing"),
    memory: color("memory"),
    select: color("select"),
  };
  probe.remove();
  return theme;
}

/** Hatchings tell causes apart without colour: lines at an angle, or dots. */
const hatchings = [45, -45, 90, 0, 22, -22] as const;

/** A pattern for the `index`-th cause. */
export function hatching(context: CanvasRenderingContext2D, color: string, index: number): CanvasPattern | string {
  const size = 8;
  const tile = new OffscreenCanvas(size, size);
  const tileContext = tile.getContext("2d");
  if (tileContext === null) return color;
  tileContext.strokeStyle = color;
  tileContext.lineWidth = index % 2 === 0 ? 1.5 : 2.5;
  for (const offset of [-size, 0, size]) {
    tileContext.beginPath();
    tileContext.moveTo(offset, size / 2);
    tileContext.lineTo(offset + size, size / 2);
    tileContext.stroke();
  }
  const pattern = context.createPattern(tile, "repeat");
  pattern?.setTransform(new DOMMatrix().rotate(hatchings[index % hatchings.length] ?? 0));
  return pattern ?? color;
}
