/**
 * The grants of a lockfile as text for acceptance, and the error that refuses to run unaccepted grants.
 *
 * Input: plugins with authority that no record of this machine covers. Output: lines that show every grant in full, and
 * a finding with the command that accepts them. Invariant: a scope is never shortened, and text from the lockfile
 * cannot forge or hide a line.
 */
import { isAbsolute, join, normalize } from "node:path";
import { describeScope } from "../definitions/authorities.ts";
import { type Diagnostic, escapeHostile, oneWord, ProjectError } from "../base/diagnostic.ts";
import type { Digest } from "../base/integrity.ts";
import { isObject, type JsonObject } from "../base/json_read.ts";
import { LOCK_FILE } from "../base/constants.ts";
import type { AuthorityHolder } from "../lockfile/held_authority.ts";

/** The authority of a plugin: a heading, then one line per grant, provider and guest namespace. */
export function holderLines(holder: AuthorityHolder): string[] {
  const { id, version, source, publisher, grants, reach, guest, world = [] } = holder;
  const from = source.kind === "path"
    ? `the directory ${oneWord(source.path)}`
    : `${source.registry}, by ${publisher ?? "?"}`;
  const lines = [
    `${id} ${version} from ${from}`,
    ...grantRows(grants).map((row) => `  ${row}`),
    ...world.map((row) => `  ${row}`),
    ...Object.keys(reach).sort().flatMap((provider) =>
      grantRows(reach[provider]).map((row) => `  through ${provider}: ${row}`)
    ),
    ...(guest.length === 0 ? [] : [`  guests call it as ${guest.join(" and ")}`]),
  ];
  return lines.map(escapeHostile);
}

function grantRows(grants: { readonly [name: string]: JsonObject }): string[] {
  return Object.keys(grants).sort().map((name) => {
    const scope = describeScope(grants[name]);
    const outside = outsideRoots(grants[name]);
    const warning = outside.length === 0 ? "" : ` (outside of the project: ${outside.map(oneWord).join(" ")})`;
    return `${name}${scope === "" ? "" : ` ${scope}`}${warning}`;
  });
}

/** Directories of a grant that are not below the project. */
function outsideRoots({ roots }: JsonObject): string[] {
  if (!isObject(roots)) return [];
  return Object.values(roots).map(String).filter((path) => isAbsolute(path) || /^\.\.(?:\/|$)/.test(normalize(path)));
}

/** The refusal without a terminal. */
export function unaccepted(root: string, holders: readonly AuthorityHolder[], digest: Digest): ProjectError {
  const names = holders.length === 1 ? holders[0].id : `${holders.length} plugins`;
  const notes = holders.flatMap((holder): Diagnostic[] => {
    const [head, ...rows] = holderLines(holder);
    return rows.map((row) => ({ code: "trust.grant", severity: "note", message: `${head}:${row.slice(1)}` }));
  });
  return new ProjectError([...notes, {
    code: "trust.needed",
    severity: "error",
    message: `the grants of ${names} were not accepted on this machine`,
    file: join(root, LOCK_FILE),
    help:
      `if you agree to the grants above, run \`waft trust ${digest}\` (in CI: \`waft run --locked --trust ${digest} …\`)`,
  }]);
}
