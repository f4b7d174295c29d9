/**
 * Serves HTTP requests with components (`waft serve`). In: files, limits, grants and an address. Out: events for a log.
 * Invariant: the files are checked, compiled and instantiated once before the address is opened, so a component that
 * cannot serve is an error of the command.
 */
import { closeSync, openSync, readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { devNull } from "node:os";
import { Budget, type Context, type EngineOptions, InstancePool, NewEngine } from "@waft/engine";
import { compileBinary, type ComponentInstance, type ComponentPoolOptions } from "@waft/component/internal/component";
import { httpInterfaces } from "@waft/component/internal/http";
import { type HandlerLimits, RequestHandler } from "@waft/component/internal/http/request_handler";
import { RouteTable } from "@waft/component/internal/http/routes";
import {
  ComponentServer,
  handlerProblem,
  isReusable,
  type RequestReport,
  type ServerKeys,
  type ServerLoad,
} from "@waft/component/internal/http/server";
import { type Sampler, TraceContext } from "@waft/component/internal/http/trace";
import { ComponentWasi, type NetworkOptions } from "@waft/component/wasi";
import { FileFailure, UsageError } from "../../base/failure.ts";
import { protectedPaths } from "../../base/protected_paths.ts";
import { narrowedInputs, narrowedInterfaces, narrowedStreams } from "../../definitions/wasi_groups.ts";
import { type GrantedDrafts, openDrafts } from "./granted_drafts.ts";
import { componentBytes } from "../tools/component_bytes.ts";
import { readInput } from "../tools/read_input.ts";
import { inFile, programArguments } from "./run_module.ts";
import type { InstanceLoad } from "./serve_metrics.ts";

/** A component, the requests that it answers, its limits and its grants. */
export interface ServedComponent {
  readonly file: string;
  /** Name for reports, where a server has several components. */
  readonly name?: string;
  readonly host?: string;
  /** The requests for this path and those below it. */
  readonly path: string;
  readonly engine: EngineOptions;
  readonly limits: HandlerLimits;
  /** The number of requests that an instance handles before it is reset. */
  readonly maxReuse?: number;
  /** The limits of one request. */
  readonly context: () => Context;
  /** The port for editors, 0 for any: the component runs under the debugger. */
  readonly debugPort?: number;
  readonly network: NetworkOptions;
  /** The draft interfaces of WASI that the component gets. */
  readonly drafts?: GrantedDrafts;
  readonly preopens: readonly { host: string; guest: string }[];
  readonly env: readonly (readonly [string, string])[];
  /** The groups of WASI that the project allows its guests; undefined: all, or there is no project. */
  readonly wasiGroups: readonly string[] | undefined;
  /** The name of the program that the guest sees, if it is not that of its file. */
  readonly argv0?: string;
  /** Root of the project that the current directory belongs to. */
  readonly root?: string;
}

/** Options of the server. */
export interface ServeOptions {
  readonly components: readonly ServedComponent[];
  /** The address, or the descriptor of a socket that listens. */
  readonly place: { readonly host: string; readonly port: number } | { readonly fd: number };
  /** PEM files of the certificate and the private key; they are read again when they change. */
  readonly tls?: { readonly cert: string; readonly key: string };
  /** Answers HTTP/2 without TLS, too, to clients that begin with it. With TLS, HTTP/2 needs no option. */
  readonly h2c?: boolean;
  /** Decides which requests are traced; without it, the server has no spans. */
  readonly sampler?: Sampler;
  readonly onRequest: (report: RequestReport) => void;
  /** Called after the certificate has been read again; `error`: it is not valid, and the one before it remains. */
  readonly onCertificate: (error?: unknown) => void;
}

/** A running server. */
export interface Serving {
  readonly url: string;
  /** The load of this moment. */
  readonly load: ServerLoad;
  readonly instances: InstanceLoad;
  /** The port for editors, under the debugger. */
  readonly debugPort: number | undefined;
  /** Accepts nothing more, waits for the requests in progress, and releases everything. */
  stop(): Promise<void>;
  /** The same, but clients have `idleMs` to close their connections, so that none loses a request. */
  drain(idleMs: number): Promise<void>;
}

/** Starts to serve. Throws FileFailure for a file that cannot serve; rejects if the address is not available. */
export async function serveComponents(
  { components, place, tls, h2c = false, sampler, ...events }: ServeOptions,
): Promise<Serving> {
  const traces = new TraceContext(sampler);
  const guests: Guest[] = [];
  const close = () => {
    for (const guest of guests) guest.close();
  };
  try {
    for (const component of components) guests.push(await prepare(component, traces));
    const routes = new RouteTable(
      components.map(({ host, path }, k) => ({
        path,
        target: guests[k].handler,
        ...(host === undefined ? {} : { host }),
      })),
    );
    const keyFiles = tls === undefined ? undefined : await watchedKeys(tls);
    const keys = tls === undefined ? {} : { keys: await readKeys(tls) };
    const http2 = tls === undefined && !h2c ? undefined : await import("@waft/component/internal/http/http2");
    const versions = http2?.hasHttp2() ? { http2 } : {};
    if (h2c && http2?.hasHttp2() === false) {
      throw new UsageError("--h2c needs HTTP/2 of Node or Deno; Bun cannot add it");
    }
    const server = new ComponentServer({ ...keys, ...versions, traces, routes, onRequest: events.onRequest });
    const address = await server.listen(place);
    keyFiles?.watch(server, events.onCertificate);
    let ending: Promise<void> | undefined;
    return {
      url: urlOf(tls === undefined ? "http" : "https", address),
      get load() {
        return server.load;
      },
      get instances() {
        return sumOf(guests);
      },
      debugPort: guests.find(({ debugPort }) => debugPort !== undefined)?.debugPort,
      stop: () => {
        ending ??= server.stop().finally(close);
        return ending;
      },
      drain: async (idleMs) => {
        await server.drain(idleMs);
        ending ??= Promise.resolve(close());
        await ending;
      },
    };
  } catch (error) {
    close();
    throw error;
  }
}

/** A component that is ready to answer requests. */
interface Guest {
  readonly handler: RequestHandler;
  readonly budget: Budget;
  readonly isMetered: boolean;
  readonly debugPort: number | undefined;
  close(): void;
}

/** Compiles a component, and makes its first instance. */
async function prepare(served: ServedComponent, traces: TraceContext): Promise<Guest> {
  const { file, name, network, preopens, wasiGroups, limits, maxReuse = 1 } = served;
  const component = served.debugPort === undefined
    ? await compileFile(file, served.engine)
    : await debugFile(file, served.engine, served.debugPort);
  const protect = preopens.length === 0 ? {} : { protect: protectedPaths(served) };
  // The guest's standard output goes to the log of the process, which is its standard error.
  const input = openSync(devNull, "r");
  const stdio: [number, number, number] = [input, 2, 2];
  const inputs = {
    ...narrowedInputs({ ...served, args: programArguments(file, [], served.argv0) }, wasiGroups),
    ...narrowedStreams(stdio, wasiGroups),
  };
  const wasi = inFile(file, () => new ComponentWasi({ ...inputs, network, waitInEventLoop: true, ...protect }));
  const drafts = await openDrafts(served.drafts, wasi).catch((error: unknown) => {
    wasi.close();
    closeSync(input);
    throw error;
  });
  const isMetered = served.context().fuel !== undefined;
  const budget = new Budget(isMetered ? { fuel: UNLIMITED_FUEL } : {});
  // The budget of a call pays for its fuel, that of an instantiation for memory.
  const context = isMetered ? () => ({ ...served.context(), budget }) : served.context;
  const pool = component.pool({
    size: limits.concurrent,
    context: { deadline: INSTANTIATION_MS, budget },
    imports: {
      ...narrowedInterfaces(wasi.imports, wasiGroups),
      ...httpInterfaces(wasi, traces),
      ...drafts.imports,
    },
  });
  const names = name === undefined ? {} : { name };
  const handler = new RequestHandler({ ...names, pool, preview1: wasi.preview1, limits, context, maxReuse });
  const close = () => {
    handler.close();
    void component.close?.();
    drafts.close();
    wasi.close();
    closeSync(input);
  };
  try {
    inFile(file, () => requireHandler(pool, maxReuse));
  } catch (error) {
    close();
    throw error;
  }
  return { handler, budget, isMetered, debugPort: component.debugPort, close };
}

/** The instances of all components. */
function sumOf(guests: readonly Guest[]): InstanceLoad {
  const sum = (value: (guest: Guest) => number) => guests.reduce((total, guest) => total + value(guest), 0);
  return {
    idle: sum(({ handler }) => handler.idle),
    taken: sum(({ handler }) => handler.taken),
    memoryBytes: sum(({ budget }) => budget.usedBytes),
    fuelUsed: guests.some(({ isMetered }) => isMetered)
      ? sum(({ isMetered, budget }) => isMetered ? UNLIMITED_FUEL - Number(budget.fuel) : 0)
      : undefined,
  };
}

function urlOf(scheme: string, address: AddressInfo | string): string {
  if (typeof address === "string") return `${scheme}+unix:${address}`;
  return `${scheme}://${address.family === "IPv6" ? `[${address.address}]` : address.address}:${address.port}/`;
}

const PRIVATE_KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]+-----END [A-Z ]*PRIVATE KEY-----/;

/** Reads the certificate and the key. Throws FileFailure if they cannot be read or do not belong together. */
async function readKeys({ cert, key }: NonNullable<ServeOptions["tls"]>): Promise<ServerKeys> {
  const { createPrivateKey, X509Certificate } = await import("node:crypto");
  const [certificate, keyText] = [cert, key].map((path) => inFile(path, () => readFileSync(path, "utf8")));
  // Hosts differ in whether they find a key behind certificates.
  const [privateKey] = PRIVATE_KEY.exec(keyText) ?? [];
  if (privateKey === undefined) throw new FileFailure(key, new Error("no private key in the form PEM"));
  try {
    if (!new X509Certificate(certificate).checkPrivateKey(createPrivateKey(privateKey))) {
      throw new Error(`not the certificate of the key in ${key}`);
    }
  } catch (error) {
    throw new FileFailure(cert, error);
  }
  return { cert: certificate, key: privateKey };
}

/** Remembers the state of the files, so that no change is missed between the first reading and the watch. */
async function watchedKeys(files: NonNullable<ServeOptions["tls"]>) {
  const { fileState, watchFile } = await import("./file_watch.ts");
  const states = new Map([files.cert, files.key].map((path) => [path, fileState(path)]));
  return {
    watch(server: ComponentServer, onCertificate: ServeOptions["onCertificate"]): void {
      const renew = async () => {
        try {
          server.setKeys(await readKeys(files));
          onCertificate();
        } catch (error) {
          onCertificate(error);
        }
      };
      for (const [path, state] of states) watchFile(path, state, () => void renew());
    },
  };
}

/** The fuel of a budget that counts it and limits nothing: the largest integer that numbers have exactly. */
const UNLIMITED_FUEL = Number.MAX_SAFE_INTEGER;

/** The time that the start functions of an instance may take, in milliseconds. */
const INSTANTIATION_MS = 60_000;

async function compileFile(file: string, options: EngineOptions): Promise<PreparedComponent> {
  const binary = await binaryFile(file);
  return inFile(file, () => {
    const component = compileBinary(NewEngine(options), binary);
    return { pool: (options) => component.pool(options) };
  });
}

/** A component for the pool of its instances. */
interface PreparedComponent {
  pool(options: ComponentPoolOptions): InstancePool<ComponentInstance>;
  /** The port for editors. */
  readonly debugPort?: number;
  close?(): Promise<void>;
}

/** Compiles a component for the debugger, and listens for editors. */
async function debugFile(
  file: string,
  { cache: _, ...engine }: EngineOptions,
  port: number,
): Promise<PreparedComponent> {
  const binary = await binaryFile(file);
  const { DebugServer } = await import("../../debug/mod.ts");
  const { mapBeside } = await import("./source_map_beside.ts");
  const server = await DebugServer.listen({ port });
  try {
    const component = await server.compileComponent(binary, { name: file, engine, sourceMap: mapBeside(file) });
    const pool = ({ size = 1, context, imports }: ComponentPoolOptions) =>
      new InstancePool(() => component.instantiate({ ...context, resettable: true }, imports).instance, size);
    return { pool, debugPort: server.port, close: () => server.close() };
  } catch (error) {
    await server.close();
    throw error instanceof FileFailure ? error : new FileFailure(file, error);
  }
}

async function binaryFile(file: string): Promise<Uint8Array> {
  let bytes: Uint8Array;
  try {
    bytes = readInput(file);
  } catch (error) {
    throw new FileFailure(file, error);
  }
  const binary = await inFile(file, () => componentBytes(bytes));
  return inFile(file, () => {
    if (binary === undefined) throw new Error("not a component; `waft run` runs modules");
    return binary;
  });
}

/** Makes the first instance. Throws an Error if it does not handle requests, or as many as it should. */
function requireHandler(pool: InstancePool<ComponentInstance>, maxReuse: number): void {
  const instance = pool.take();
  const problem = handlerProblem(instance) ??
    (maxReuse > 1 && !isReusable(instance)
      ? "--max-reuse needs a component of WASI 0.3 (wasi:http/handler)"
      : undefined);
  pool.put(instance);
  if (problem !== undefined) throw new Error(problem);
}
