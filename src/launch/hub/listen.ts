/** Opens the port of the rendezvous, or says why it cannot be opened. */
import type { Server } from "node:net";
import { type Diagnostic, DiagnosticError } from "../../diagnostics/diagnostic.ts";
import { hostPort } from "./host-port.ts";

/** Throws `rendezvous-failed`: the port may be taken, and the host unknown or another machine. */
export function listen(
  server: Server,
  { host, port }: { readonly host: string | null; readonly port: number },
): Promise<number> {
  return new Promise((resolve, refuse) => {
    const reject = (error: Error): void => {
      refuse(new DiagnosticError([cannotListen(host, port, error)]));
    };
    server.once("error", reject);
    server.listen({ ...(host === null ? {} : { host }), port }, () => {
      server.removeListener("error", reject);
      const address = server.address();
      resolve(address !== null && typeof address === "object" ? address.port : port);
    });
  });
}

function cannotListen(host: string | null, port: number, error: Error): Diagnostic {
  const taken = "code" in error && error.code === "EADDRINUSE";
  return {
    code: "rendezvous-failed",
    message: "rank 0 could not open the rendezvous",
    place: { kind: "call", text: `rendezvous at ${hostPort(host, port)}` },
    found: error.message,
    expected: "a free port of this machine",
    help: taken
      ? "set MASTER_PORT to another port, whose successor is free too, on all ranks"
      : "set MASTER_ADDR to an address of the machine of rank 0, on all ranks",
  };
}
