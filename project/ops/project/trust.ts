/**
 * `trust`: records that the user of this machine accepts the grants of a project's lockfile.
 *
 * In: a project, and a digest or a question. Out: the plugins with authority, their common digest, and whether
 * they are accepted now. Invariant: a record is made only if the digest matches or the user said yes. An invalid
 * lockfile is refused.
 */
import { fail, ProjectError } from "../../base/diagnostic.ts";
import { type Digest, isDigest } from "../../base/integrity.ts";
import {
  type AuthorityHolder,
  authorityHolders,
  authorityState,
  digestOfHolders,
} from "../../lockfile/held_authority.ts";
import type { OpsContext } from "../../packages/context.ts";
import { TrustStore } from "../../packages/trust_store.ts";
import { type AskToAccept, unaccepted } from "../../plugins/acceptance.ts";
import { readProject } from "../../project.ts";

/** Options of a decision. */
export interface TrustRequest {
  /** The digest of the grants to accept; a lockfile with other grants is refused. */
  readonly digest?: string;
  /** Asks the user; absent without a terminal. */
  readonly ask?: AskToAccept;
  readonly dryRun?: boolean;
}

/** The outcome. */
export interface TrustResult {
  readonly state: "none" | "covered" | "accepted" | "refused" | "pending";
  readonly holders: readonly AuthorityHolder[];
  /** The groups of WASI that guests may use; absent: all. */
  readonly wasi?: readonly string[];
  /** Absent when no plugin has authority, and guests have no more of WASI than was accepted. */
  readonly digest?: Digest;
  readonly asked: boolean;
}

/** Shows, asks and records. */
export async function acceptGrants(context: OpsContext, root: string, request: TrustRequest): Promise<TrustResult> {
  const { holders, wasi } = await authorityIn(context, root);
  const store = new TrustStore(context);
  const groups = await store.uncoveredGroups(root, wasi);
  const shown = { holders, ...(wasi === undefined ? {} : { wasi }) };
  if (holders.length + groups.length === 0 && wasi === undefined) return { state: "none", ...shown, asked: false };
  const digest = digestOfHolders(holders, wasi);
  if (request.digest !== undefined) requireSame(request.digest, digest);
  const uncovered = await store.uncovered(root, holders);
  if (uncovered.length + groups.length === 0) {
    if (request.dryRun !== true) await store.noteGroups(root, wasi);
    return { state: "covered", ...shown, digest, asked: false };
  }
  if (request.dryRun === true) return { state: "pending", ...shown, digest, asked: false };
  const asks = request.digest === undefined;
  if (asks) {
    if (request.ask === undefined) throw unaccepted(root, uncovered, digest, groups);
    if (!await request.ask(root, uncovered, groups)) return { state: "refused", ...shown, digest, asked: true };
  }
  await store.accept(root, holders, wasi);
  return { state: "accepted", ...shown, digest, asked: asks };
}

/** Deletes the record of accepted grants for a project; returns false if there was none. */
export async function forgetGrants(context: OpsContext, root: string): Promise<boolean> {
  return await new TrustStore(context).forget(root);
}

async function authorityIn(
  context: OpsContext,
  root: string,
): Promise<{ readonly holders: AuthorityHolder[]; readonly wasi?: readonly string[] }> {
  const { lock } = await readProject(root, context.files);
  if (lock === undefined) return { holders: [] };
  if (lock.lockfile === undefined) throw new ProjectError(lock.diagnostics);
  const state = authorityState(lock.lockfile);
  return { holders: authorityHolders(state), ...(state.wasi === undefined ? {} : { wasi: state.wasi }) };
}

function requireSame(given: string, digest: Digest): void {
  if (!isDigest(given)) throw fail("usage.digest", "a digest is `sha256:` and 64 hexadecimal digits");
  if (given !== digest) {
    throw fail("trust.digest", `the lockfile's grants have the digest ${digest}, not ${given}`, {
      help: "review the changes with `waft trust`",
    });
  }
}
