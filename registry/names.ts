/**
 * Package ids in the registry: in address segments, as owners' prefixes, and compared for confusion.
 *
 * In: text from URLs and archives. Out: ids that match P1, or nothing. An id occupies one segment, with `%2F` or,
 * because proxies decode that, `:` for each slash (P1 has no colon). Two ids of one host that differ only in characters
 * that are easily overlooked have the same skeleton.
 */
import { domainToUnicode } from "node:url";
import { isPluginId } from "../project/base/grammar.ts";

/** The id in a decoded address segment; undefined for other text, so that only ids reach a query. */
export function idOfSegment(segment: string): string | undefined {
  // A second layer of encoding leaves a % behind, which P1 does not allow.
  const id = segment.replaceAll(":", "/");
  return isPluginId(id) ? id : undefined;
}

/** An id as one segment of an address on this site: readable, and safe from proxies that decode `%2F`. */
export function segmentOfId(id: string): string {
  return id.replaceAll("/", ":");
}

/** The host of an id. */
export function hostOf(id: string): string {
  return id.slice(0, id.indexOf("/")).toLowerCase();
}

/** An id without the differences that readers overlook. */
export function skeletonOf(id: string): string {
  return id.toLowerCase().replace(/[-_.~]/g, "").replaceAll("0", "o").replace(/[1i]/g, "l").replaceAll("rn", "m")
    .replaceAll("vv", "w");
}

/** True when a label of the host is punycode; such ids are shown decoded and held for moderation. */
export function isPunycode(id: string): boolean {
  return hostOf(id).split(".").some((label) => label.startsWith("xn--"));
}

/** The host's readable form when it is punycode. */
export function decodedHost(id: string): string | undefined {
  if (!isPunycode(id)) return undefined;
  const text = domainToUnicode(hostOf(id));
  return text === "" ? undefined : text;
}

/** Every prefix that could own an id, the longest first; prefixes are kept in lower case. */
export function prefixesOf(id: string): string[] {
  const parts = id.toLowerCase().split("/");
  return parts.map((_, i) => parts.slice(0, parts.length - i).join("/"));
}

/** True when a prefix covers an id. */
export function isBelow(id: string, prefix: string): boolean {
  const lower = id.toLowerCase();
  return prefix === "*" || lower === prefix || lower.startsWith(`${prefix}/`);
}

/** True for text that can be an owner's prefix: a host, or an id. */
export function isPrefix(text: string): boolean {
  return text === text.toLowerCase() && text.length <= 300 && isPluginId(text.includes("/") ? text : `${text}/x`);
}
