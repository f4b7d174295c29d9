/**
 * Addresses of wasi:sockets. In: addresses as WIT has them, or as text with a port. Out: the other form. Invariant: an
 * IPv4 address inside IPv6 is refused, so an address has one form.
 */
import { errorCode } from "@waft/engine/internal/errors";
import { BlockList, isIP } from "node:net";
import { networkInterfaces } from "node:os";
import { ComponentError } from "../abi/traps.ts";
import { canonicalAddress } from "./network_grants.ts";

/** Throws an error code of wasi:sockets. */
export function fail(code: string): never {
  throw new ComponentError(code);
}

export type Family = "ipv4" | "ipv6";

type Ipv4 = readonly [number, number, number, number];
type Ipv6 = readonly [number, number, number, number, number, number, number, number];

/** wasi:sockets/network ip-address. */
export type IpAddress = { readonly tag: "ipv4"; readonly val: Ipv4 } | { readonly tag: "ipv6"; readonly val: Ipv6 };

/** wasi:sockets/network ip-socket-address. */
export type SocketAddress =
  | { readonly tag: "ipv4"; readonly val: { readonly port: number; readonly address: Ipv4 } }
  | {
    readonly tag: "ipv6";
    readonly val: {
      readonly port: number;
      readonly flowInfo: number;
      readonly address: Ipv6;
      readonly scopeId: number;
    };
  };

/** An address as text in canonical form, and a port. */
export interface Endpoint {
  readonly address: string;
  readonly port: number;
}

/** Reads an address of a guest. Throws invalid-argument for one of another family, or an IPv4 address inside IPv6. */
export function endpointOf({ tag, val }: SocketAddress, family: Family): Endpoint {
  const text = tag === "ipv4" ? val.address.join(".") : val.address.map((part) => part.toString(16)).join(":");
  const address = canonicalAddress(text);
  if (tag !== family || isIP(address) !== (tag === "ipv4" ? 4 : 6)) throw new ComponentError("invalid-argument");
  return { address, port: val.port };
}

/** True for the unspecified address, which means all addresses of this machine. */
export function isUnspecified(address: string): boolean {
  return address === "0.0.0.0" || address === "::";
}

/** Addresses of groups of hosts: multicast and broadcast. */
const GROUPS = new BlockList();
GROUPS.addSubnet("224.0.0.0", 4, "ipv4");
GROUPS.addAddress("255.255.255.255", "ipv4");
GROUPS.addSubnet("ff00::", 8, "ipv6");

/** Throws invalid-argument for an address of a group of hosts, to which no connection leads. */
export function requireUnicast({ address }: Endpoint): void {
  if (GROUPS.check(address, isIP(address) === 6 ? "ipv6" : "ipv4")) throw new ComponentError("invalid-argument");
}

/**
 * The address of this machine from which datagrams to `remote` leave, if it can be told from the networks of the
 * machine's interfaces: a remote address in one of them, or any interface that leads outside.
 */
export function localAddressFor(remote: string): string | undefined {
  const family = isIP(remote) === 6 ? "ipv6" : "ipv4";
  const own = Object.values(networkInterfaces()).flatMap((list) => list ?? [])
    .filter(({ address }) => isIP(address) === (family === "ipv6" ? 6 : 4));
  const isNear = ({ cidr }: { readonly cidr: string | null }) => {
    if (cidr === null) return false;
    const [network, bits] = cidr.split("/");
    const list = new BlockList();
    list.addSubnet(network, Number(bits), family);
    return list.check(remote, family);
  };
  const isGlobal = ({ internal, address }: { readonly internal: boolean; readonly address: string }) =>
    !internal && !/^fe80:/i.test(address);
  const found = own.find(isNear) ?? own.find(isGlobal);
  return found === undefined ? undefined : canonicalAddress(found.address);
}

/** Throws invalid-argument for an address that no remote socket has. */
export function requireRemote({ address, port }: Endpoint): void {
  if (port === 0 || isUnspecified(address)) throw new ComponentError("invalid-argument");
}

/** The address of a text. */
export function ipAddress(text: string): IpAddress {
  const address = canonicalAddress(text);
  if (isIP(address) === 4) return { tag: "ipv4", val: address.split(".").map(Number) as unknown as Ipv4 };
  const [head, tail] = address.split("::") as [string, string?];
  const parts = (half: string | undefined) => half ? half.split(":").map((part) => parseInt(part, 16)) : [];
  const [first, last] = [parts(head), parts(tail)];
  const zeros = Array<number>(8 - first.length - last.length).fill(0);
  return { tag: "ipv6", val: [...first, ...zeros, ...last] as unknown as Ipv6 };
}

/** The address of a socket. */
export function socketAddress({ address, port }: Endpoint): SocketAddress {
  const ip = ipAddress(address);
  if (ip.tag === "ipv4") return { tag: "ipv4", val: { port, address: ip.val } };
  return { tag: "ipv6", val: { port, flowInfo: 0, address: ip.val, scopeId: 0 } };
}

/** Error codes of wasi:sockets, by those of the system. */
const CODES: Readonly<Record<string, string>> = {
  EACCES: "access-denied",
  EPERM: "access-denied",
  EADDRINUSE: "address-in-use",
  EADDRNOTAVAIL: "address-not-bindable",
  EAFNOSUPPORT: "not-supported",
  ECONNABORTED: "connection-aborted",
  ECONNREFUSED: "connection-refused",
  ECONNRESET: "connection-reset",
  EHOSTUNREACH: "remote-unreachable",
  EINVAL: "invalid-argument",
  EMFILE: "new-socket-limit",
  EMSGSIZE: "datagram-too-large",
  ENETUNREACH: "remote-unreachable",
  EPIPE: "connection-reset",
  ETIMEDOUT: "timeout",
};

/** The error code of an error of the system. */
export function socketErrorCode(error: unknown): string {
  return CODES[errorCode(error) ?? ""] ?? "unknown";
}

/**
 * The connections of a guest. A connection counts until the host has closed it, which may be long after the guest has
 * dropped it.
 */
export class SocketQuota {
  readonly #most: number;
  #open = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** Counts one more. False if there are too many. */
  tryTake(): boolean {
    if (this.#open >= this.#most) return false;
    this.#open++;
    return true;
  }

  /** Counts one more. Throws new-socket-limit if there are too many. */
  take(): void {
    if (!this.tryTake()) throw new ComponentError("new-socket-limit");
  }

  /** The number that is open. */
  get open(): number {
    return this.#open;
  }

  release(): void {
    this.#open--;
  }
}
