/**
 * TCP sockets that listen, for the option `sockets` of WASI: preview 1 has functions that accept connections, and none
 * that listens. In: an address and a port. Out: a descriptor of the process. Linux only.
 */
import { linuxCalls } from "../host/calls/linux_calls.ts";
import { currentHost } from "../host/current.ts";
import { Scratch } from "./scratch.ts";

const AF_INET = 2;
const AF_INET6 = 10;
const SOCK_STREAM = 1;
const SOCK_CLOEXEC = 0x80000;
const SOL_SOCKET = 1;
const SO_REUSEADDR = 2;
const IPPROTO_IPV6 = 41;
const IPV6_V6ONLY = 26;
/** Connections that wait to be accepted. */
const BACKLOG = 128;

/** Bytes of sockaddr_in and sockaddr_in6. */
const SIZE_4 = 16;
const SIZE_6 = 28;
/** Where a call's other words are: behind the address. */
const WORD = 32;

const WHY_NOT: Readonly<Record<number, string>> = {
  13: "this user may not use the port",
  98: "the address is in use",
  99: "this machine does not have the address",
};

/** A socket that listens. */
export interface ListeningSocket {
  /** The descriptor of the process. */
  readonly descriptor: number;
  /** The port, which the system has chosen if 0 was given. */
  readonly port: number;
  /** Closes the socket. */
  close(): void;
}

/** Listens on `address`: `127.0.0.1:8080`, `[::1]:8080`; port 0 is any free one. Throws an Error. */
export function listenTcp(address: string): ListeningSocket {
  const bytes = socketAddress(address);
  if (bytes === undefined) throw new Error(`"${address}" is not ADDRESS:PORT, such as 127.0.0.1:8080`);
  const host = currentHost();
  if (host.os !== "linux") throw new Error("modules listen on sockets on Linux only; components do on every system");
  const sys = linuxCalls(host);
  const { out } = new Scratch(host);
  const isSix = bytes.length === SIZE_6;
  const checked = (result: number): number => {
    if (result >= 0) return result;
    throw new Error(`cannot listen on ${address}: ${WHY_NOT[-result] ?? `error ${-result}`}`);
  };
  const fd = checked(sys("socket", isSix ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  try {
    out.u32[WORD >> 2] = 1;
    // A server that was started again need not wait until the connections of the last one are forgotten.
    checked(sys("setsockopt", fd, SOL_SOCKET, SO_REUSEADDR, out.address + WORD, 4));
    if (isSix) checked(sys("setsockopt", fd, IPPROTO_IPV6, IPV6_V6ONLY, out.address + WORD, 4));
    out.u8.set(bytes);
    checked(sys("bind", fd, out.address, bytes.length));
    checked(sys("listen", fd, BACKLOG));
    out.u32[WORD >> 2] = bytes.length;
    checked(sys("getsockname", fd, out.address, out.address + WORD));
  } catch (error) {
    sys("close", fd);
    throw error;
  }
  return { descriptor: fd, port: out.u8[2] << 8 | out.u8[3], close: () => void sys("close", fd) };
}

/** The sockaddr of an address with a port; undefined for another form. */
function socketAddress(text: string): Uint8Array | undefined {
  const [, six, four, digits] = /^(?:\[([0-9a-f:.]+)\]|([0-9.]+)):([0-9]{1,5})$/i.exec(text) ?? [];
  const port = Number(digits);
  if (digits === undefined || port > 0xffff) return undefined;
  const address = six === undefined ? bytesOf4(four) : bytesOf6(six);
  if (address === undefined) return undefined;
  const bytes = new Uint8Array(six === undefined ? SIZE_4 : SIZE_6);
  bytes.set([six === undefined ? AF_INET : AF_INET6, 0, port >> 8, port & 0xff]);
  // In sockaddr_in6, the flow comes before the address.
  bytes.set(address, six === undefined ? 4 : 8);
  return bytes;
}

function bytesOf4(text: string): number[] | undefined {
  const parts = text.split(".");
  const isValid = parts.length === 4 &&
    parts.every((part) => /^(?:0|[1-9][0-9]{0,2})$/.test(part) && Number(part) < 256);
  return isValid ? parts.map(Number) : undefined;
}

/** The bytes of an IPv6 address, which URLs write in one form: groups without leading zeros, one gap of zeros. */
function bytesOf6(text: string): number[] | undefined {
  if (!URL.canParse(`http://[${text}]/`)) return undefined;
  const [before, after] = new URL(`http://[${text}]/`).hostname.slice(1, -1).split("::");
  const groups = (part: string | undefined) => part === undefined || part === "" ? [] : part.split(":");
  const [high, low] = [groups(before), groups(after)];
  const gap = Array.from({ length: 8 - high.length - low.length }, () => "0");
  return [...high, ...gap, ...low].flatMap((group) => {
    const value = parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
}
