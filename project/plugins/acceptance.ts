/**
 * The grants of a lockfile as text for acceptance, and the error that refuses to run unaccepted grants.
 *
 * In: a lockfile, or plugins with authority that no record of this machine covers. Out: lines that show every
 * grant in full, and a finding with the command that accepts them. Invariant: a scope is never shortened, and text from
 * the lockfile cannot forge or hide a line.
 */
import { isAbsolute, join, normalize } from "node:path";
import { describeScope } from "../definitions/authorities.ts";
import { type Diagnostic, escapeHostile, fail, oneWord, ProjectError } from "../base/diagnostic.ts";
import type { Digest } from "../base/integrity.ts";
import { isObject, type JsonObject } from "../base/json_read.ts";
import { LOCK_FILE } from "../base/constants.ts";
import type { Files } from "../base/files.ts";
import type { MachinePaths } from "../base/paths.ts";
import { type AuthorityHolder, authorityHolders, authorityState, digestOfHolders } from "../lockfile/held_authority.ts";
import type { Lockfile } from "../lockfile/lock_schema.ts";
import { TrustStore } from "../packages/trust_store.ts";

/** Asks whether a project's holders of authority, and the further groups of WASI for its guests, are accepted. */
export type AskToAccept = (
  root: string,
  holders: readonly AuthorityHolder[],
  groups: readonly string[],
) => Promise<boolean>;

/** How grants are accepted that no record of this machine covers. */
export interface AcceptOptions {
  /**
   * Whether plugins run: default true. If not, only what guests may use of WASI has to be accepted.
   *
   * @internal
   */
  readonly plugins?: boolean;
  /** Accepts the lockfile whose grants have this digest, without a record on this machine. */
  readonly trust?: string;
  /**
   * Asks the user to accept the grants that no record covers; absent without a terminal.
   *
   * @internal
   */
  readonly ask?: AskToAccept;
  /**
   * Whether these are the user's own plugins.
   *
   * @internal
   */
  readonly user?: boolean;
}

/** The authority of a plugin: a heading, then one line per grant, provider and guest namespace. */
export function holderLines(holder: AuthorityHolder): string[] {
  const { id, version, source, publisher, grants, reach, guest, world = [] } = holder;
  const lines = [
    `${id} ${version} from ${originText(source, publisher)}`,
    ...grantRows(grants).map((row) => `  ${row}`),
    ...world.map((row) => `  ${row}`),
    ...Object.keys(reach).sort().flatMap((provider) =>
      grantRows(reach[provider]).map((row) => `  through ${provider}: ${row}`)
    ),
    ...(guest.length === 0 ? [] : [`  guests call it as ${guest.join(" and ")}`]),
  ];
  return lines.map(escapeHostile);
}

function originText(source: AuthorityHolder["source"], publisher: string | undefined): string {
  if (source.kind === "path") return `the directory ${oneWord(source.path)}`;
  if (source.kind === "registry") return `${source.registry}, by ${publisher ?? "?"}`;
  const { reference, manifest, signedBy } = source;
  const exact = reference.includes("@") ? reference : `${reference}@${manifest}`;
  return `${exact}, ${signedBy === undefined ? "not signed" : `signed by ${signedBy}`}`;
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

/** Lines about the groups of WASI that guests may use without acceptance. */
export function groupLines(groups: readonly string[]): string[] {
  return groups.length === 0 ? [] : [`guests of the project: more of WASI than was accepted: ${groups.join(" ")}`];
}

/** The refusal without a terminal. */
export function unaccepted(
  root: string,
  holders: readonly AuthorityHolder[],
  digest: Digest,
  groups: readonly string[],
  user = false,
): ProjectError {
  const plugins = holders.length === 1 ? holders[0].id : `${holders.length} plugins`;
  const names = [...(holders.length === 0 ? [] : [plugins]), ...(groups.length === 0 ? [] : ["the guests"])].join(
    " and ",
  );
  const notes = holders.flatMap((holder): Diagnostic[] => {
    const [head, ...rows] = holderLines(holder);
    return rows.map((row) => ({ code: "trust.grant", severity: "note", message: `${head}:${row.slice(1)}` }));
  });
  for (const message of groupLines(groups)) notes.push({ code: "trust.grant", severity: "note", message });
  return new ProjectError([...notes, {
    code: "trust.needed",
    severity: "error",
    message: `the grants of ${names} were not accepted on this machine`,
    file: join(root, LOCK_FILE),
    help: user
      ? `if you agree to the grants above, run \`waft trust --user ${digest}\``
      : `if you agree to the grants above, run \`waft trust ${digest}\` (in CI: \`waft run --locked --trust ${digest} …\`)`,
  }]);
}

/**
 * Throws unless the user of this machine accepted everything that the lockfile grants; without one, guests may use all
 * of WASI.
 */
export async function requireAccepted(
  context: { readonly paths: MachinePaths; readonly files: Files },
  root: string,
  lock: Lockfile | undefined,
  { trust, ask, plugins = true, user = false }: AcceptOptions,
): Promise<void> {
  const state = lock === undefined ? undefined : authorityState(lock);
  const holders = state === undefined ? [] : authorityHolders(state);
  const digest = digestOfHolders(holders, state?.wasi);
  if (trust !== undefined) {
    if (trust === digest) return;
    throw fail("trust.digest", `the grants of ${LOCK_FILE} have the digest ${digest}, not the accepted ${trust}`, {
      file: join(root, LOCK_FILE),
      help: "review the changes, then pass the new digest",
    });
  }
  const store = new TrustStore(context);
  const uncovered = plugins ? await store.uncovered(root, holders) : [];
  const groups = await store.uncoveredGroups(root, state?.wasi);
  if (uncovered.length + groups.length === 0) return await store.noteGroups(root, state?.wasi);
  if (ask === undefined) throw unaccepted(root, uncovered, digest, groups, user);
  if (!await ask(root, uncovered, groups)) throw fail("trust.refused", "the grants were not accepted, so nothing runs");
  await store.accept(root, holders, state?.wasi);
}
