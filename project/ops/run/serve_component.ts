/**
 * Serves HTTP requests with a component (`waft serve`). In: a file, limits, grants and an address. Out: events for a
 * log. Invariant: the file is checked, compiled and instantiated once before the address is opened, so a component that
 * cannot serve is an error of the command.
 */
import { closeSync, openSync, readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { devNull } from "node:os";
import { Budget, type Context, type EngineOptions, type InstancePool, NewEngine } from "@waft/engine";
import { compileBinary, type ComponentInstance } from "@waft/component/internal/component";
import { httpInterfaces } from "@waft/component/internal/http";
import {
  ComponentServer,
  handlerProblem,
  type RequestReport,
  type ServerKeys,
  type ServerLimits,
  type ServerLoad,
} from "@waft/component/internal/http/server";
import { TraceContext } from "@waft/component/internal/http/trace";
import { draftInterfaces, type DraftOptions } from "@waft/component/internal/wasi/drafts";
import { ComponentWasi, type NetworkOptions } from "@waft/component/wasi";
import { FileFailure } from "../../base/failure.ts";
import { protectedPaths } from "../../base/protected_paths.ts";
import { narrowedInputs, narrowedInterfaces, narrowedStreams } from "../../definitions/wasi_groups.ts";
import { componentBytes } from "../tools/component_bytes.ts";
import { readInput } from "../tools/read_input.ts";
import { inFile, programArguments } from "./run_module.ts";
import type { InstanceLoad } from "./serve_metrics.ts";

/** Options of the server. */
export interface ServeOptions {
  readonly engine: EngineOptions;
  /** The address, or the descriptor of a socket that listens. */
  readonly place: { readonly host: string; readonly port: number } | { readonly fd: number };
  /** PEM files of the certificate and the private key; they are read again when they change. */
  readonly tls?: { readonly cert: string; readonly key: string };
  readonly limits: ServerLimits;
  /** The limits of one request. */
  readonly context: () => Context;
  readonly network: NetworkOptions;
  /** The draft interfaces of WASI that the component gets. */
  readonly drafts?: DraftOptions;
  readonly preopens: readonly { host: string; guest: string }[];
  readonly env: readonly (readonly [string, string])[];
  /** The groups of WASI that the project allows its guests; undefined: all, or there is no project. */
  readonly wasiGroups: readonly string[] | undefined;
  /** The name of the program that the guest sees, if it is not that of its file. */
  readonly argv0?: string;
  /** Root of the project that the current directory belongs to. */
  readonly root?: string;
  readonly onRequest: (report: RequestReport) => void;
  /** Called after the certificate has been read again; `error`: it is not valid, and the one before it remains. */
  readonly onCertificate: (error?: unknown) => void;
}

/** A component that serves. */
export interface Serving {
  readonly url: string;
  /** The load of this moment. */
  readonly load: ServerLoad;
  readonly instances: InstanceLoad;
  /** Accepts nothing more, waits for the requests in progress, and releases everything. */
  stop(): Promise<void>;
  /** The same, but clients have `idleMs` to close their connections, so that none loses a request. */
  drain(idleMs: number): Promise<void>;
}

/** Starts to serve. Throws FileFailure for a file that cannot serve; rejects if the address is not available. */
export async function serveComponent(file: string, options: ServeOptions): Promise<Serving> {
  const component = await compileFile(file, options.engine);
  const { network, preopens, wasiGroups, limits, onRequest } = options;
  const protect = preopens.length === 0 ? {} : { protect: protectedPaths(options) };
  // The guest's standard output goes to the log of the process, which is its standard error.
  const input = openSync(devNull, "r");
  const stdio: [number, number, number] = [input, 2, 2];
  const inputs = {
    ...narrowedInputs({ ...options, args: programArguments(file, [], options.argv0) }, wasiGroups),
    ...narrowedStreams(stdio, wasiGroups),
  };
  const wasi = inFile(file, () => new ComponentWasi({ ...inputs, network, waitInEventLoop: true, ...protect }));
  const isMetered = options.context().fuel !== undefined;
  const budget = new Budget(isMetered ? { fuel: UNLIMITED_FUEL } : {});
  // The budget of a call pays for its fuel, that of an instantiation for memory.
  const context = isMetered ? () => ({ ...options.context(), budget }) : options.context;
  const traces = new TraceContext();
  const pool = component.pool({
    size: limits.concurrent,
    context: { deadline: INSTANTIATION_MS, budget },
    imports: {
      ...narrowedInterfaces(wasi.imports, wasiGroups),
      ...httpInterfaces(wasi, traces),
      ...draftInterfaces(options.drafts ?? {}),
    },
  });
  const close = () => {
    pool.close();
    wasi.close();
    closeSync(input);
  };
  try {
    inFile(file, () => requireHandler(pool));
    const { tls } = options;
    const keys = tls === undefined ? {} : { keys: await readKeys(tls) };
    const server = new ComponentServer({ ...keys, traces, pool, preview1: wasi.preview1, limits, context, onRequest });
    const address = await server.listen(options.place);
    if (tls !== undefined) await watchKeys(server, tls, options.onCertificate);
    let ending: Promise<void> | undefined;
    return {
      url: urlOf(tls === undefined ? "http" : "https", address),
      get load() {
        return server.load;
      },
      get instances() {
        return {
          idle: pool.idle,
          taken: pool.taken,
          memoryBytes: budget.usedBytes,
          fuelUsed: isMetered ? UNLIMITED_FUEL - Number(budget.fuel) : undefined,
        };
      },
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

async function watchKeys(
  server: ComponentServer,
  files: NonNullable<ServeOptions["tls"]>,
  onCertificate: ServeOptions["onCertificate"],
): Promise<void> {
  const { watchFile } = await import("./file_watch.ts");
  const renew = async () => {
    try {
      server.setKeys(await readKeys(files));
      onCertificate();
    } catch (error) {
      onCertificate(error);
    }
  };
  for (const path of new Set([files.cert, files.key])) watchFile(path, () => void renew());
}

/** The fuel of a budget that counts it and limits nothing: the largest integer that numbers have exactly. */
const UNLIMITED_FUEL = Number.MAX_SAFE_INTEGER;

/** The time that the start functions of an instance may take, in milliseconds. */
const INSTANTIATION_MS = 60_000;

async function compileFile(file: string, options: EngineOptions) {
  let bytes: Uint8Array;
  try {
    bytes = readInput(file);
  } catch (error) {
    throw new FileFailure(file, error);
  }
  const binary = await inFile(file, () => componentBytes(bytes));
  return inFile(file, () => {
    if (binary === undefined) throw new Error("not a component; `waft run` runs modules");
    return compileBinary(NewEngine(options), binary);
  });
}

/** Makes the first instance. Throws an Error if it does not handle requests. */
function requireHandler(pool: InstancePool<ComponentInstance>): void {
  const instance = pool.take();
  const problem = handlerProblem(instance);
  pool.put(instance);
  if (problem !== undefined) throw new Error(problem);
}
