/**
 * The imports of a component plugin: WASI 0.2 narrowed to the plugin's grants, and `waft:plugin/self`.
 *
 * In: a node with the link table. Out: imports for `Component.instantiate`, for the linked interfaces alone.
 * Invariants: a file, stream, variable, clock or host is reachable only with the scope of a grant; a clock or random
 * bytes that are denied trap, all else that is denied fails as WASI says; the project's protected files are never
 * changed.
 */
import { TrapError } from "@waft/engine";
import { READER_RIGHTS, WRITER_RIGHTS } from "@waft/engine/internal/wasi/abi";
import { httpInterfaces } from "@waft/component/internal/http";
import type { ComponentImports } from "@waft/component/internal/link/host_names";
import { datetime } from "@waft/component/internal/wasi/filesystem";
import { ComponentWasi } from "@waft/component/wasi";
import { escapeHostile, fail } from "../base/diagnostic.ts";
import type { JsonObject } from "../base/json_read.ts";
import { hostInterface } from "../definitions/wit_interfaces.ts";
import { WasiError } from "@waft/engine/internal/wasi/paths";
import { openPluginRoot, protectedFromPlugins } from "./files.ts";
import { grantedClock, wallClock } from "./machine.ts";
import type { ComponentPlace } from "./component_part.ts";
import { LOG_LEVELS, MAX_LINE } from "./self.ts";

type Grants = { readonly [authority: string]: JsonObject };

/** The imports of a plugin. What they hold open is released when the graph ends. */
export function componentImports(node: ComponentPlace): ComponentImports {
  const { grants, denied, linked } = linksOf(node);
  const wasi = wasiFor(node, grants);
  const all: { [name: string]: unknown } = {
    ...wasi.imports,
    ...(linked.some((name) => name.startsWith("wasi:http/")) ? httpInterfaces(wasi) : {}),
    ...narrowed(wasi, grants),
    "waft:plugin/self": selfInterface(node, grants),
  };
  for (const name of denied) {
    if (TRAPPING.test(name)) all[name] = trapping(node, name, all[name] as object);
  }
  return Object.fromEntries(linked.map((name) => [name, all[name]]));
}

/** The interfaces that the link table opens, without versions: their grants, and those that are denied. */
function linksOf({ plugin }: ComponentPlace): { grants: Grants; denied: string[]; linked: string[] } {
  const grants: { [authority: string]: JsonObject } = {};
  const denied: string[] = [];
  const linked: string[] = [];
  for (const { module, target } of plugin.links) {
    const row = hostInterface(module);
    if (typeof row === "string") continue;
    const plain = row.name;
    linked.push(plain);
    if (target.kind === "host") Object.assign(grants, target.grants);
    else if (target.kind === "denied") denied.push(plain);
  }
  return { grants, denied, linked };
}

/** Interfaces whose functions cannot fail, so that calls trap where the authority is denied. */
const TRAPPING = /^wasi:(?:clocks|random)\//;

function trapping({ plugin }: ComponentPlace, name: string, functions: object): object {
  const refuse = () => {
    throw new TrapError(`${name} is denied to ${plugin.id}`);
  };
  return Object.fromEntries(Object.keys(functions).map((key) => [key, refuse]));
}

/** WASI with the directories, variables, streams and hosts of the grants. */
function wasiFor(node: ComponentPlace, grants: Grants): ComponentWasi {
  const { args, env, stdio } = node.services;
  const names = new Set(listed(grants["guest.env"], "names"));
  const wasi = new ComponentWasi({
    args: "guest.args" in grants ? args : [],
    env: env.filter(([name]) => names.has(name)),
    stdio,
    protect: protectedFromPlugins(node.services),
    network: {
      connect: listed(grants["net.connect"], "hosts"),
      listen: listed(grants["net.listen"], "hosts"),
    },
  });
  node.closers.push(() => wasi.close());
  const streams = new Set(listed(grants.stdio, "streams"));
  ["stdin", "stdout", "stderr"].forEach((name, fd) => {
    if (!streams.has(name)) wasi.preview1.onDescriptor("fd_fdstat_set_rights", fd, 0n, 0n);
  });
  for (const directory of directoriesOf(grants)) openDirectory(node, wasi, directory);
  return wasi;
}

function listed(scope: JsonObject | undefined, key: string): string[] {
  return (scope?.[key] as string[] | undefined) ?? [];
}

/** A directory of a plugin: the name of its root, the directory of the host, and the rights in it. */
interface Directory {
  readonly guest: string;
  readonly host: string;
  readonly writes: boolean;
  readonly rights: number;
}

function directoriesOf(grants: Grants): Directory[] {
  const found = new Map<string, Directory>();
  for (const [authority, given] of [["fs.read", READER_RIGHTS], ["fs.write", WRITER_RIGHTS]] as const) {
    const roots = (grants[authority]?.roots ?? {}) as { readonly [root: string]: string };
    for (const [guest, host] of Object.entries(roots)) {
      const key = JSON.stringify([guest, host]);
      const before = found.get(key);
      const writes = authority === "fs.write" || before?.writes === true;
      found.set(key, { guest, host, writes, rights: given | (before?.rights ?? 0) });
    }
  }
  return [...found.values()];
}

function openDirectory(node: ComponentPlace, wasi: ComponentWasi, { guest, host, writes, rights }: Directory): void {
  let fd: number;
  try {
    fd = openPluginRoot(node, guest, host, { writes, create: writes });
  } catch (error) {
    if (!(error instanceof WasiError)) throw error;
    throw fail("link.root", `${node.plugin.id}: the directory ${host} of its root ${guest} cannot be opened`);
  }
  wasi.preview1.addDirectory(fd, guest, rights);
}

/** The last instant of a clock. */
const LATEST = 2n ** 64n - 1n;

/** Interfaces in which a grant's scope, or the place of a plugin, gives functions another meaning. */
function narrowed({ imports, preview1 }: ComponentWasi, grants: Grants): ComponentImports {
  const none = () => undefined;
  const exit = () => {
    throw new TrapError("exit was called");
  };
  const wall = wallClock(grants["clock.wall"]);
  const monotonic = grantedClock(grants["clock.monotonic"], () => preview1.time(1), 1n);
  return {
    "wasi:cli/exit": { exit, exitWithCode: exit },
    "wasi:cli/terminal-stdin": { getTerminalStdin: none },
    "wasi:cli/terminal-stdout": { getTerminalStdout: none },
    "wasi:cli/terminal-stderr": { getTerminalStderr: none },
    "wasi:clocks/wall-clock": { now: () => datetime(wall.now()), resolution: () => datetime(wall.resolution()) },
    "wasi:clocks/monotonic-clock": narrowedClock(imports["wasi:clocks/monotonic-clock"] as MonotonicClock, monotonic),
  };
}

/** The parts of `wasi:clocks/monotonic-clock` that a grant narrows. */
interface MonotonicClock {
  now(): bigint;
  subscribeInstant(time: bigint): unknown;
}

/** A clock with the readings of `granted`. Its timers end at such readings, so that they tell the time no better. */
function narrowedClock(clock: MonotonicClock, granted: ReturnType<typeof grantedClock>): object {
  const step = granted.resolution();
  const subscribeInstant = (time: bigint) => {
    const reading = (time + step - 1n) / step * step;
    return clock.subscribeInstant(reading > LATEST ? LATEST : reading);
  };
  return {
    ...clock,
    ...granted,
    subscribeInstant,
    subscribeDuration: (duration: bigint) => subscribeInstant(granted.now() + duration),
  };
}

/** `waft:plugin/self@1`, always linked: configuration, log, abort, and the authorities that are granted. */
function selfInterface({ plugin, services }: ComponentPlace, grants: Grants): object {
  const line = (text: string) => escapeHostile(text.slice(0, MAX_LINE));
  return {
    config: () => new TextDecoder().decode(plugin.config),
    granted: (authority: string) => Object.hasOwn(grants, authority),
    log: (level: string, text: string) => {
      const number = (LOG_LEVELS as readonly string[]).indexOf(level);
      services.log(plugin.id, number < 0 ? LOG_LEVELS.length - 1 : number, line(String(text)));
    },
    abort: (text: string) => {
      throw new TrapError(`abort: ${line(String(text))}`);
    },
  };
}
