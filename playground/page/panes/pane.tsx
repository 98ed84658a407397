/** The panes by name. */
import type { JSX } from "preact";
import type { PaneName } from "../../model/state.ts";
import type { PageProps } from "../props.ts";
import { CommandsPane } from "./commands.tsx";
import { CurvesPane } from "./curves.tsx";
import { FusionPane } from "./fusion.tsx";
import { HostPane } from "./host.tsx";
import { PassesPane } from "./passes.tsx";
import { StreamsPane } from "./streams.tsx";
import { TimelinePane } from "./timeline.tsx";

export const paneLabels: { readonly [P in PaneName]: string } = {
  fusion: "Fusion",
  passes: "Passes",
  host: "Host program",
  commands: "Commands",
  streams: "Streams",
  timeline: "Timeline",
  curves: "Curves",
};

export function Pane({ pane, ...props }: PageProps & { readonly pane: PaneName }): JSX.Element {
  switch (pane) {
    case "fusion":
      return <FusionPane {...props} />;
    case "passes":
      return <PassesPane {...props} />;
    case "host":
      return <HostPane {...props} />;
    case "commands":
      return <CommandsPane {...props} />;
    case "streams":
      return <StreamsPane {...props} />;
    case "timeline":
      return <TimelinePane {...props} />;
    case "curves":
      return <CurvesPane {...props} />;
  }
}
