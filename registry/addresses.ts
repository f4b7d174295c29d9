/**
 * Client addresses, and the parts of them that count as one client.
 *
 * In: an address as text. Out: the address for rate limits (IPv6: its /64), and the network for install counts (IPv4
 * /24, IPv6 /48). Text that is not an address becomes one common value.
 */
import { isIPv4, isIPv6 } from "node:net";

/** The address that rate limits count by. */
export function rateAddress(address: string): string {
  const plain = unmapped(address);
  return isIPv4(plain) ? plain : isIPv6(plain) ? groups(plain).slice(0, 4).join(":") : "unknown";
}

/**
 * The networks that an address of {@linkcode rateAddress} is in, the smallest first: IPv4 /24 and /16, IPv6 /48 and
 * /32.
 */
export function enclosingNetworks(address: string): string[] {
  if (isIPv4(address)) return [3, 2].map((count) => address.split(".").slice(0, count).join("."));
  return address.includes(":") ? [3, 2].map((count) => address.split(":").slice(0, count).join(":")) : [];
}

/** The network that installs count by. */
export function networkOf(address: string): string {
  const plain = unmapped(address);
  if (isIPv4(plain)) return plain.split(".").slice(0, 3).join(".");
  return isIPv6(plain) ? groups(plain).slice(0, 3).join(":") : "unknown";
}

/** The client's address as the last proxy saw it. */
export function forwardedAddress(field: string | null, peer: string): string {
  const last = (field ?? "").split(",").at(-1)!.trim();
  return isIPv4(last) || isIPv6(last) ? last : peer;
}

/** The address without its zone; an IPv4 address that IPv6 contains (::ffff:1.2.3.4, in any notation) as IPv4. */
function unmapped(address: string): string {
  const bare = address.replace(/%.*$/, "");
  if (!isIPv6(bare)) return bare;
  const parts = groups(bare);
  if (parts.slice(0, 6).join(":") !== "0:0:0:0:0:ffff") return bare;
  return parts.slice(6).flatMap((part) => [parseInt(part, 16) >> 8, parseInt(part, 16) & 0xff]).join(".");
}

/** The eight groups of an IPv6 address, in lower case and without leading zeros. */
function groups(address: string): string[] {
  const [head, tail] = address.toLowerCase().replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, hexadecimal).split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - left.length - right.length);
  return [...left, ...new Array<string>(zeros).fill("0"), ...right].map((g) => g.replace(/^0+(?=.)/, ""));
}

/** The two groups of an IPv4 address at the end of an IPv6 address. */
function hexadecimal(_: string, ...bytes: readonly unknown[]): string {
  const [a, b, c, d] = bytes.map(Number);
  return `${(a << 8 | b).toString(16)}:${(c << 8 | d).toString(16)}`;
}
