/**
 * Compares the scopes of two requests for the same authority.
 *
 * In: two requests. Out: true when the first scope is contained in the second, by the project's own rules for grants.
 */
import { findAuthority, listKeyOf } from "../project/definitions/authorities.ts";
import type { AuthorityRequest } from "../project/definitions/definition.ts";

/** True when `request` asks for no more than `known`. */
export function grantWithin(request: AuthorityRequest, known: AuthorityRequest): boolean {
  const authority = findAuthority(request.name);
  if (known.scope === undefined) return request.scope === undefined || authority?.scope === "clock";
  if (authority === undefined || request.scope === undefined) return false;
  const key = listKeyOf(authority.scope);
  if (key === undefined) {
    // Numbers: a coarser clock is less, fewer or smaller instances are less.
    const coarser = authority.scope === "clock";
    return Object.entries(known.scope).every(([name, limit]) => {
      const asked = request.scope![name];
      return typeof asked === "number" && typeof limit === "number" && (coarser ? asked >= limit : asked <= limit);
    });
  }
  const old = known.scope[key];
  const now = request.scope[key];
  if (!Array.isArray(old) || !Array.isArray(now)) return false;
  return now.every((item) =>
    old.includes(item) || (key === "roots" && old.some((root) => isBelowRoot(String(item), String(root))))
  );
}

function isBelowRoot(path: string, root: string): boolean {
  return root === "/" || path === root || path.startsWith(`${root}/`);
}
