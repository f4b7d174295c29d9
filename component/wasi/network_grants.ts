/**
 * The part of the network that a guest may reach. In: grants `HOST[:PORT]` to connect to and `ADDRESS:PORT` to listen
 * on. Out: decisions about names, addresses and ports. Invariant: the address of a connection is one that a grant
 * names, or one that the resolver gave for a granted name; a name leads to addresses of this machine and of private
 * networks only if it is `localhost` or a grant names that address, too.
 */
import { lookup } from "node:dns";
import { BlockList, isIP } from "node:net";
import { requireTexts } from "@waft/engine/internal/base/arguments";
import { ComponentError } from "../abi/traps.ts";

/** Grants of the network. */
export interface NetworkOptions {
  /** Hosts to connect to: `HOST:PORT`, or `HOST` for all ports. IPv6 addresses with a port are in brackets. */
  connect?: readonly string[];
  /** Addresses to listen on and to bind sockets to: `ADDRESS:PORT`; port 0 is one that the system chooses. */
  listen?: readonly string[];
}

/** An address of the network, and a port. */
interface HostPort {
  readonly host: string;
  /** Undefined means all ports. */
  readonly port: number | undefined;
}

/**
 * Networks that a name does not lead to, unless a grant names the address: by number of bits. Some are those in which
 * translators and tunnels put IPv4 addresses.
 */
const NOT_PUBLIC: readonly (readonly [network: string, bits: number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["224.0.0.0", 3],
  ["::", 96],
  ["::ffff:0:0:0", 96],
  ["64:ff9b::", 96],
  ["64:ff9b:1::", 48],
  ["2001::", 32],
  ["2002::", 16],
  ["fc00::", 7],
  ["fec0::", 10],
  ["fe80::", 10],
  ["ff00::", 8],
];

const RESERVED = new BlockList();
for (const [network, bits] of NOT_PUBLIC) RESERVED.addSubnet(network, bits, network.includes(":") ? "ipv6" : "ipv4");

/** True for an address of this machine, of a private network, or of no single host. */
function isReserved(address: string): boolean {
  return RESERVED.check(address, isIP(address) === 6 ? "ipv6" : "ipv4");
}

/** The maximum number of addresses of granted names that a guest may connect to. */
const MAX_RESOLVED = 4096;

/** The maximum number of bytes of a name. */
const MAX_NAME = 253;

/** A name, as DNS and URLs have it: letters, digits, hyphens and points. */
const NAME = /^(?!-)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?$/;

function canonicalName(name: string): string {
  return name.toLowerCase().replace(/\.$/, "");
}

/** Throws the ComponentError invalid-argument for a text that is neither an address nor a name. */
export function requireHost(text: string): void {
  const host = canonicalName(text);
  if (isIP(host) === 0 && (host.length > MAX_NAME || !NAME.test(host))) throw new ComponentError("invalid-argument");
}

/** An address in the one form in which addresses are compared; an IPv4 address inside IPv6 is an IPv4 address. */
export function canonicalAddress(address: string): string {
  if (isIP(address) !== 6) return address;
  const text = new URL(`http://[${address.replace(/%.*$/, "")}]/`).hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(text);
  if (mapped === null) return text;
  const [high, low] = [parseInt(mapped[1], 16), parseInt(mapped[2], 16)];
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`;
}

/** Reads `HOST`, `HOST:PORT`, `[IPV6]:PORT` or an IPv6 address. Throws an Error for anything else. */
export function parseHostPort(text: string): HostPort {
  const bracketed = /^\[([^\]]*)\](?::(\d{1,5}))?$/.exec(text);
  const plain = isIP(text) === 6 ? [text, text] : /^([^:]*)(?::(\d{1,5}))?$/.exec(text);
  const match = bracketed ?? plain;
  const host = match === null ? "" : canonicalName(match[1]);
  const port = match?.[2] === undefined ? undefined : Number(match[2]);
  const isHost = bracketed === null
    ? isIP(host) !== 0 || (NAME.test(host) && !/^[\d.]+$/.test(host))
    : isIP(host) === 6;
  if (!isHost || host.length > MAX_NAME || (port ?? 0) > 65_535) {
    throw new Error(`"${text}" is not HOST or HOST:PORT; an IPv6 address with a port is in brackets`);
  }
  return { host: canonicalAddress(host), port };
}

/** The decisions about a guest's connections. */
export class NetworkGrants {
  readonly #connect: readonly HostPort[];
  readonly #listen: readonly HostPort[];
  /** Ports by addresses that granted names led to; undefined is every port. */
  readonly #resolved = new Map<string, Set<number | undefined>>();

  readonly #addressesOf: (name: string) => Promise<string[]>;

  /** Throws an Error for a grant that cannot be read. `resolver` gives the addresses of a name. */
  constructor(
    { connect = [], listen = [] }: NetworkOptions = {},
    resolver: (name: string) => Promise<string[]> = addressesOf,
  ) {
    requireTexts(connect, "The option connect");
    requireTexts(listen, "The option listen");
    this.#addressesOf = async (name) => [...new Set((await resolver(name)).map(canonicalAddress))];
    this.#connect = connect.map(parseHostPort);
    this.#listen = listen.map((text) => {
      const grant = parseHostPort(text);
      if (isIP(grant.host) === 0 || grant.port === undefined) {
        throw new Error(`"${text}" is not ADDRESS:PORT, such as 127.0.0.1:8080`);
      }
      return grant;
    });
  }

  /** Whether nothing is granted. */
  get isEmpty(): boolean {
    return this.#connect.length === 0 && this.#listen.length === 0;
  }

  /** Whether a grant names `host`, an address in canonical form or a name in lower case, and the port. */
  #names(host: string, port: number | undefined): boolean {
    return this.#connect.some((grant) =>
      grant.host === host && (grant.port === undefined || port === undefined || grant.port === port)
    );
  }

  /** Whether the guest may connect to this address. */
  mayConnect(address: string, port: number): boolean {
    const host = canonicalAddress(address);
    const ports = this.#resolved.get(host);
    return this.#names(host, port) || ports?.has(port) === true || ports?.has(undefined) === true;
  }

  /** Whether the guest may bind a socket to this address. Port 0 asks the system to choose one. */
  mayListen(address: string, port: number): boolean {
    const host = canonicalAddress(address);
    return this.#listen.some((grant) => grant.host === host && grant.port === port);
  }

  /**
   * The addresses of a granted name, or an address itself, to which the guest may connect from now on. `port` is that
   * of the connection, if it is known. Rejects with a ComponentError with a code of wasi:sockets.
   */
  async resolve(name: string, port?: number): Promise<string[]> {
    requireHost(name);
    const host = canonicalName(name);
    if (isIP(host) !== 0) {
      const address = canonicalAddress(host);
      if (port !== undefined && !this.mayConnect(address, port)) throw new ComponentError("access-denied");
      return [address];
    }
    if (!this.#names(host, port)) throw new ComponentError("access-denied");
    const usable = (await this.#addressesOf(host)).filter((address) =>
      host === "localhost" || !isReserved(address) || this.#names(address, port)
    );
    if (usable.length === 0) throw new ComponentError("access-denied");
    // An address that is usable only because a grant names it has the ports of that grant, not those of the name.
    for (const address of usable) if (host === "localhost" || !isReserved(address)) this.#remember(host, address);
    return usable;
  }

  /** Lets the guest connect to an address on the ports that are granted for a name. */
  #remember(host: string, address: string): void {
    if (this.#resolved.size >= MAX_RESOLVED) this.#resolved.clear();
    let ports = this.#resolved.get(address);
    if (ports === undefined) this.#resolved.set(address, ports = new Set());
    for (const grant of this.#connect) if (grant.host === host) ports.add(grant.port);
  }
}

/** The addresses of a name, those of IPv4 first. */
function addressesOf(name: string): Promise<string[]> {
  return new Promise((resolve, reject) => {
    lookup(name, { all: true }, (error, found) => {
      if (error === null) {
        return resolve(found.map(({ address }) => address).sort((a, b) => isIP(a) - isIP(b)));
      }
      const isTemporary = error.code === "EAI_AGAIN" || error.code === "ETIMEOUT";
      reject(new ComponentError(isTemporary ? "temporary-resolver-failure" : "name-unresolvable"));
    });
  });
}
