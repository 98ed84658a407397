/** The Fusion: its ops, and how each tensor lies on the devices and in chunks. */
import type { JSX } from "preact";
import { type Resharding, reshardingCells, reshardingColumns } from "../../../src/passes/moves/list-reshardings.ts";
import type { TensorPicture } from "../../compiler/parts.ts";
import { variableNames } from "../../model/variable-names.ts";
import { useLinked, useStore } from "../hooks.ts";
import type { PageProps } from "../props.ts";
import { Empty } from "./empty.tsx";
import { LinkedText } from "./linked-text.tsx";
import { ShardingPicture } from "./sharding-picture.tsx";

export function FusionPane({ store, pointing }: PageProps): JSX.Element {
  const { history, results } = useStore(store);
  const { lowered } = results;
  const linked = useLinked(pointing);
  if (lowered === null) return <Empty results={results} />;
  if (!lowered.isFusion) {
    return (
      <p class="empty">
        This program is written as host programs, so it has no Fusion.{" "}
        <button
          type="button"
          onClick={() => {
            store.change({ kind: "pane", pane: "host" });
          }}
        >
          Show the host program
        </button>
      </p>
    );
  }
  const variables = variableNames(history.present.document.text, lowered.tensors);
  const labels = new Map(lowered.tensors.map(({ id, name }) => [id, variables.get(id) ?? userName(name)]));
  const inWords = (text: string): string => text.replaceAll(/\bT(\d+)\b/gu, (all, id) => labels.get(Number(id)) ?? all);
  const pointAt = (source: number | undefined): void => {
    pointing.point(source === undefined || source === 0 ? null : { kind: "source", line: source });
  };
  return (
    <>
      <h2>Tensors</h2>
      <Legend lowered={lowered.devices} />
      <p class="hint axes-help">
        The axes below a tensor are those of its loops: part i of <code class="axis did">ideviceIdx</code> is on device
        i, part i of <code class="axis stream">istreamIdx</code> is chunk i and runs on the next stream. An axis{" "}
        <code class="axis">iS</code> is not cut, and one that is summed over (<code class="axis reduced">rS</code>) is
        not stored. Numbers in braces are extents.
      </p>
      <div class="pictures">
        {lowered.tensors.map((tensor) => (
          <TensorCard
            key={tensor.id}
            tensor={tensor}
            label={labels.get(tensor.id) ?? `T${tensor.id}`}
            isLinked={tensor.source > 0 && linked.sources.includes(tensor.source)}
            point={(on) => {
              pointAt(on ? tensor.source : undefined);
            }}
          />
        ))}
      </div>
      <h2>Communication that the shardings need</h2>
      {lowered.reshardings.length === 0 ? (
        <p class="empty">Nothing moves between devices.</p>
      ) : (
        <Communication reshardings={lowered.reshardings} inWords={inWords} />
      )}
      <h2>Ops</h2>
      <LinkedText
        lines={lowered.fusion}
        isLinked={({ sources }) => sources.some((line) => linked.sources.includes(line))}
        point={(line) => {
          pointAt(line?.sources[0]);
        }}
      />
    </>
  );
}

function Legend({ lowered }: { readonly lowered: number }): JSX.Element {
  const shown = Math.min(lowered, 16);
  return (
    <ul class="legend" aria-label="Colors of devices">
      {Array.from({ length: shown }, (_, device) => (
        <li key={device}>
          <span class={`swatch device-${device % 8}`} /> device {device}
        </li>
      ))}
      {shown < lowered && <li>… {lowered}</li>}
      <li>
        <span class="swatch whole" /> on all devices
      </li>
    </ul>
  );
}

interface CommunicationProps {
  readonly reshardings: readonly Resharding[];
  /** A text with the user's names in place of numbers of tensors. */
  readonly inWords: (text: string) => string;
}

function Communication({ reshardings, inWords }: CommunicationProps): JSX.Element {
  return (
    <>
      <table class="table">
        <thead>
          <tr>
            {reshardingColumns.map((label) => (
              <th key={label} scope="col">
                {label}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {reshardings.map((each, i) => (
            <tr key={i}>
              {reshardingCells(each).map((text, column) => (
                <td key={column}>{inWords(text)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {reshardings.map(({ hint }) => hint !== undefined && <p class="hint keys advice">Hint: {inWords(hint)}</p>)}
    </>
  );
}

/** `out` of `T3 out`. */
function userName(name: string): string {
  return name.replace(/^T\d+ /u, "");
}

interface CardProps {
  readonly tensor: TensorPicture;
  /** What the program calls it; `T3` without a name. */
  readonly label: string;
  readonly isLinked: boolean;
  readonly point: (on: boolean) => void;
}

function TensorCard({ tensor, label, isLinked, point }: CardProps): JSX.Element {
  return (
    <figure
      class={isLinked ? "card linked" : "card"}
      onMouseEnter={() => {
        point(true);
      }}
      onMouseLeave={() => {
        point(false);
      }}
    >
      <figcaption>
        <strong>{label}</strong>{" "}
        <span class="role">
          {label === `T${tensor.id}` ? "" : `T${tensor.id}, `}
          {tensor.role}
        </span>
        <code>
          {tensor.dtype} [
          {tensor.logical
            .filter(({ type }) => type !== "reduced")
            .map(({ extent }) => extent ?? "?")
            .join(", ")}
          ]
        </code>
      </figcaption>
      <ShardingPicture tensor={tensor} />
      <ul class="axes" aria-label="Loop axes">
        {tensor.loop.map(({ name, type }) => (
          <li key={name} class={`axis ${type.startsWith("DID") ? "did" : type.toLowerCase()}`} title={axisHelp(type)}>
            {name}
          </li>
        ))}
      </ul>
    </figure>
  );
}

function axisHelp(type: string): string {
  if (type.startsWith("DID")) return "part i is on device i of the mesh";
  if (type === "Stream") return "part i is chunk i, on stream i modulo the number of streams";
  return type === "reduced" ? "summed over: not in memory" : "local to a device";
}
