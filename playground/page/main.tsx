/** Starts the page: restores the state from the address or from the last visit, and shows it. */
import { render } from "preact";
import { firstState, followLinks, keepState, linkedExample } from "./persistence.ts";
import { acceptDrops, openExample } from "./open-file.ts";
import { App } from "./app.tsx";
import { createPointing } from "./pointing.ts";
import { createStore } from "./store.ts";
import { startTheme } from "./theme.ts";

async function start(): Promise<void> {
  const store = createStore(await firstState());
  const example = linkedExample(location.hash.slice(1));
  if (example !== null) void openExample(example, store);
  followLinks(store);
  keepState(store);
  acceptDrops(store);
  const root = document.getElementById("app");
  if (root !== null) {
    root.replaceChildren();
    render(<App store={store} pointing={createPointing(store)} />, root);
  }
}

startTheme();
void start();
