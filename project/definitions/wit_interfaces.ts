/**
 * The interfaces of WIT that component plugins can import from the host: one row each with the authorities that open
 * it.
 *
 * In: the name of an import or export of a world. Out: its row, or the reason for having none. Only the rows of
 * this table can be linked, in the versions that waft implements. An interface without authorities carries values only:
 * its functions act on resources that other rows have opened.
 */
import { parseInterfaceName, versionTrack } from "@waft/component/internal/model/names";
import { nearestName } from "../base/grammar.ts";

/** A row of the table. */
interface HostInterface {
  /** The name without a version. */
  readonly name: string;
  /** The versions that are linked: the releases that begin with this. */
  readonly version: string;
  /** Any one of these authorities opens it; empty means that it is always linked. */
  readonly authorities: readonly string[];
  /** Its functions wait for the network, so calls into the plugin are asynchronous where the caller allows that. */
  readonly waits: boolean;
}

const NET = "net.connect|net.listen";
const FILES = "fs.read|fs.write";

/** Rows: name, version, authorities separated by |. */
const ROWS: readonly (readonly [name: string, version: string, authorities: string])[] = [
  ["waft:plugin/self", "1", ""],
  ["wasi:cli/environment", "0.2", "guest.args|guest.env"],
  ["wasi:cli/exit", "0.2", ""],
  ["wasi:cli/stderr", "0.2", "stdio"],
  ["wasi:cli/stdin", "0.2", "stdio"],
  ["wasi:cli/stdout", "0.2", "stdio"],
  ["wasi:cli/terminal-input", "0.2", ""],
  ["wasi:cli/terminal-output", "0.2", ""],
  ["wasi:cli/terminal-stderr", "0.2", ""],
  ["wasi:cli/terminal-stdin", "0.2", ""],
  ["wasi:cli/terminal-stdout", "0.2", ""],
  ["wasi:clocks/monotonic-clock", "0.2", "clock.monotonic"],
  ["wasi:clocks/wall-clock", "0.2", "clock.wall"],
  ["wasi:filesystem/preopens", "0.2", FILES],
  ["wasi:filesystem/types", "0.2", FILES],
  ["wasi:http/outgoing-handler", "0.2", "net.connect"],
  ["wasi:http/types", "0.2", "net.connect"],
  ["wasi:io/error", "0.2", ""],
  ["wasi:io/poll", "0.2", ""],
  ["wasi:io/streams", "0.2", ""],
  ["wasi:random/insecure", "0.2", "random"],
  ["wasi:random/insecure-seed", "0.2", "random"],
  ["wasi:random/random", "0.2", "random"],
  ["wasi:sockets/instance-network", "0.2", NET],
  ["wasi:sockets/ip-name-lookup", "0.2", "net.connect"],
  ["wasi:sockets/network", "0.2", NET],
  ["wasi:sockets/tcp", "0.2", NET],
  ["wasi:sockets/tcp-create-socket", "0.2", NET],
  ["wasi:sockets/udp", "0.2", NET],
  ["wasi:sockets/udp-create-socket", "0.2", NET],
];

/** Every interface of the host, by its name without a version. */
export const HOST_INTERFACES: ReadonlyMap<string, HostInterface> = new Map(ROWS.map(([name, version, words]) => {
  const authorities = words === "" ? [] : words.split("|");
  return [name, { name, version, authorities, waits: /^wasi:(?:http|sockets)\//.test(name) }];
}));

/** The interface that a plugin may export for the engine, and its functions, which are all optional. */
export const LIFECYCLE = { name: "waft:plugin/lifecycle", version: "1", functions: ["init", "stop"] } as const;

/** Name and version of an interface: `wasi:io/streams` and `0.2.3`; undefined for other names. */
export function splitInterface(name: string): { readonly plain: string; readonly version: string } | undefined {
  try {
    const { namespace, package: home, interface: label, version = "" } = parseInterfaceName(name, 0);
    return { plain: `${namespace}:${home}/${label}`, version };
  } catch {
    return undefined;
  }
}

/** Whether an interface that is offered serves one that is imported: the same name, in a compatible version. */
export function sameInterface(offered: string, wanted: string): boolean {
  if (offered === wanted) return true;
  const [own, other] = [splitInterface(offered), splitInterface(wanted)];
  return own !== undefined && other !== undefined && own.plain === other.plain &&
    versionTrack(own.version) === versionTrack(other.version);
}

function hasVersion(version: string, row: string): boolean {
  return version === row || version.startsWith(`${row}.`) && !version.includes("-");
}

/** The row of an imported interface, or the reason for having none. */
export function hostInterface(name: string): HostInterface | string {
  const split = splitInterface(name);
  if (split === undefined) return "only interfaces can be linked";
  const row = HOST_INTERFACES.get(split.plain);
  if (row === undefined) {
    const near = nearestName(split.plain, [...HOST_INTERFACES.keys()]);
    const hint = near === undefined ? "list it under consumes if another plugin provides it" : `did you mean ${near}?`;
    return `no authority opens this interface; ${hint}`;
  }
  if (hasVersion(split.version, row.version)) return row;
  return `plugins have version ${row.version} of ${row.name}, not ${split.version || "one without a version"}`;
}

/** True for the interface by which the engine starts and stops a plugin. */
export function isLifecycle(name: string): boolean {
  const split = splitInterface(name);
  return split?.plain === LIFECYCLE.name && hasVersion(split.version, LIFECYCLE.version);
}

/** True for names that plugins cannot provide: those of WASI and of the host. */
export function isReservedInterface(name: string): boolean {
  return /^(?:wasi|waft):/.test(name);
}
