/** The bar at the top: examples, undo, share, the command line that does the same, light and dark. */
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { examples } from "virtual:examples";
import { cliCommand, type ShownCommand } from "../model/cli-command.ts";
import type { PaneName } from "../model/state.ts";
import { Icon } from "./icons.tsx";
import { useStore } from "./hooks.ts";
import { chooseFile, openExample } from "./open-file.ts";
import { shareLink } from "./persistence.ts";
import type { Store } from "./store.ts";
import { currentTheme, toggleTheme } from "./theme.ts";

/** The command that prints what a pane shows. */
const commandOf: { readonly [P in PaneName]: ShownCommand } = {
  fusion: "lower",
  passes: "lower",
  host: "lower",
  commands: "lower",
  streams: "verify",
  timeline: "explain",
  curves: "explain",
};

export interface HeaderProps {
  readonly store: Store;
  readonly startTour: () => void;
}

export function Header({ store, startTour }: HeaderProps): JSX.Element {
  const { history, results } = useStore(store);
  const { present, past, future } = history;
  const [theme, setTheme] = useState(currentTheme());
  return (
    <header>
      <h1>
        <Logo />
        Braid <small>playground</small>
      </h1>
      <ExampleMenu store={store} />
      <button type="button" onClick={startTour}>
        Tour
      </button>
      <span class="spacer" />
      <div class="group" role="group" aria-label="Edit">
        <button
          type="button"
          class="icon"
          title="Undo"
          aria-label="Undo"
          disabled={past.length === 0}
          onClick={store.undo}
        >
          <Icon name="undo" />
        </button>
        <button
          type="button"
          class="icon"
          title="Redo"
          aria-label="Redo"
          disabled={future.length === 0}
          onClick={store.redo}
        >
          <Icon name="redo" />
        </button>
      </div>
      <CopyButton label="Copy link" icon="link" text={() => shareLink(present)} />
      <CopyButton
        label="Copy command"
        icon="terminal"
        text={() => cliCommand(commandOf[present.pane], present, Object.keys(results.defaults))}
      />
      <button
        type="button"
        class="icon"
        title={theme === "dark" ? "Light colors" : "Dark colors"}
        aria-label={theme === "dark" ? "Light colors" : "Dark colors"}
        onClick={() => {
          setTheme(toggleTheme());
        }}
      >
        <Icon name={theme === "dark" ? "sun" : "moon"} />
      </button>
    </header>
  );
}

function ExampleMenu({ store }: { readonly store: Store }): JSX.Element {
  const details = useRef<HTMLDetailsElement>(null);
  const { document: file } = store.history().present;
  const close = (): void => {
    if (details.current !== null) details.current.open = false;
  };
  return (
    <details
      class="menu"
      ref={details}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        close();
        details.current?.querySelector("summary")?.focus();
      }}
      onFocusOut={({ relatedTarget }) => {
        if (relatedTarget instanceof Node && details.current?.contains(relatedTarget) !== true) close();
      }}
    >
      <summary>
        <span class="file">{file.name}</span>
        {file.isEdited === true && <small>edited</small>}
        <Icon name="chevron" />
      </summary>
      <ul class="examples" aria-label="Examples">
        <li>
          <button
            type="button"
            onClick={() => {
              close();
              chooseFile(".ts,.mts,.js,.mjs,.mlir,.pt2,.fx,.py,.fusion,.hir,.txt,.log,.out,.json", store);
            }}
          >
            <strong>Open a file …</strong>
            <span>
              A program, a dump of nvFuser (.hir, .txt, .log) or a machine profile (.json); or drop it on the page.
            </span>
          </button>
        </li>
        {examples.map(({ name, sentence }) => (
          <li key={name}>
            <button
              type="button"
              aria-current={file.name === `examples/${name}.ts`}
              onClick={() => {
                close();
                void openExample(name, store);
              }}
            >
              <strong>{name}</strong>
              <span>{sentence}</span>
            </button>
          </li>
        ))}
      </ul>
    </details>
  );
}

type Copied =
  | { readonly kind: "no" | "yes" }
  /** The browser does not allow to copy: the text is shown instead. */
  | { readonly kind: "refused"; readonly value: string };

interface CopyProps {
  readonly label: string;
  readonly icon: "link" | "terminal";
  readonly text: () => string | Promise<string>;
}

/** Copies a text, and shows it where the browser does not allow that. */
function CopyButton({ label, icon, text }: CopyProps): JSX.Element {
  const [copied, setCopied] = useState<Copied>({ kind: "no" });
  const copy = async (): Promise<void> => {
    const value = await text();
    try {
      await navigator.clipboard.writeText(value);
      setCopied({ kind: "yes" });
    } catch {
      setCopied({ kind: "refused", value });
    }
    setTimeout(() => {
      setCopied((now) => (now.kind === "yes" ? { kind: "no" } : now));
    }, 1500);
  };
  return (
    <span class="copy">
      <button type="button" aria-label={label} title={label} onClick={() => void copy()}>
        <Icon name={icon} />
        <span class="label">{copied.kind === "yes" ? "Copied" : label}</span>
      </button>
      <span role="status" class="visually-hidden">
        {copied.kind === "yes" ? `${label}: copied` : ""}
      </span>
      {copied.kind === "refused" && (
        <input
          class="copied"
          aria-label={label}
          readOnly
          value={copied.value}
          onBlur={() => {
            setCopied({ kind: "no" });
          }}
          ref={(input) => {
            input?.select();
          }}
        />
      )}
    </span>
  );
}

/** Three strands. */
function Logo(): JSX.Element {
  return (
    <svg class="logo" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
      <g fill="none" stroke-width="2.4" stroke-linecap="round">
        <path d="M4 2c0 8 12 8 12 16" stroke="var(--d0)" />
        <path d="M16 2c0 8-12 8-12 16" stroke="var(--d1)" />
        <path d="M10 2c-7 6 7 10 0 16" stroke="var(--d2)" />
      </g>
    </svg>
  );
}
