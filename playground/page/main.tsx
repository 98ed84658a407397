/** Starts the page: restores the state from the address or from the last visit, and shows it. */
import { render } from "preact";
import { firstState, keepState, openLink } from "./persistence.ts";
import { acceptDrops } from "./open-file.ts";
import { App } from "./app.tsx";
import { createPointing } from "./pointing.ts";
import { createStore } from "./store.ts";
import { startTheme } from "./theme.ts";

async function start(): Promise<void> {
  const store = createStore(await firstState());
  if (location.hash.includes("example=")) void openLink(location.hash, store);
  // A browser does not load the page again for another link.
  addEventListener("hashchange", ({ newURL }) => void openLink(new URL(newURL).hash, store));
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
