/** An editor that attaches to a program, in the tests of the debugger. */
import { DebugClient } from "@vscode/debugadapter-testsupport";

const MAIN = 1;

/** An editor that is attached, with breakpoints in functions; at the first stop if the program `stops` at once. */
export async function attach(
  port: number,
  program: string,
  functions: readonly string[],
  stops = false,
): Promise<DebugClient> {
  const client = new DebugClient("", "", "waft");
  await client.start(port);
  await client.initializeRequest();
  const initialized = client.waitForEvent("initialized");
  await client.attachRequest({ program } as object);
  await initialized;
  await client.setFunctionBreakpointsRequest({ breakpoints: functions.map((name) => ({ name })) });
  // The stop can be reported before the answer to `configurationDone`.
  const stopped = stops ? client.waitForEvent("stopped") : undefined;
  await client.configurationDoneRequest();
  await stopped;
  return client;
}

/** The functions of a stop, the innermost first. */
export async function names(client: DebugClient): Promise<string> {
  const { stackFrames } = (await client.stackTraceRequest({ threadId: MAIN })).body;
  return stackFrames.map(({ name }) => name).join(" ");
}

/** The locals of the innermost frame. */
export async function locals(client: DebugClient): Promise<string[]> {
  await client.stackTraceRequest({ threadId: MAIN });
  const { scopes } = (await client.scopesRequest({ frameId: 1 })).body;
  const { variablesReference } = scopes.find(({ name }) => name === "Locals")!;
  return (await client.variablesRequest({ variablesReference })).body.variables.map(({ name, value }) =>
    `${name}=${value}`
  );
}
