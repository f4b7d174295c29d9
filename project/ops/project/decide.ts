/**
 * Decisions on authority, from prompts and flags.
 *
 * In: prepared plugins, the last reviews, and a Decider (a prompt, flags, or a refusal). Out: grants and denials
 * for every plugin. Providers come before consumers, so the reach of a consumer is settled when it is reviewed. `--yes`
 * decides nothing: authority comes from an answer at a prompt or from flags that name it.
 */
import {
  describeScope,
  findAuthority,
  fullGrant,
  listKeyOf,
  scopeSchema,
  widerThan,
} from "../../definitions/authorities.ts";
import { reachOf } from "../../definitions/contracts.ts";
import { type AuthorityRequest, type DefinedWorld, scopeOf } from "../../definitions/definition.ts";
import { type Diagnostic, fail, ProjectError } from "../../base/diagnostic.ts";
import { emptyObject, type JsonObject } from "../../base/json_read.ts";
import type { Previous } from "../../lockfile/lock_merge.ts";
import { type Reviewed, type ReviewReason, reviewReasons } from "../../lockfile/review.ts";
import { leadsIntoGit } from "../../base/open_root.ts";
import { walkSchema } from "../../base/schema_walk.ts";
import type { Prepared, PreparedPlugin } from "./prepare.ts";

/** The information shown to a reviewer. */
export interface ReviewRequest {
  readonly plugin: PreparedPlugin;
  readonly reasons: readonly ReviewReason[];
  /** The plugins that require this one; empty when only the project requires it. */
  readonly requiredBy: readonly string[];
  readonly direct: boolean;
  /** Version of the last review. */
  readonly before?: string;
  /** Authorities that were requested at the last review. */
  readonly beforeRequests: readonly AuthorityRequest[];
  /** The world of the component at the last review. */
  readonly beforeWorld?: DefinedWorld;
  readonly reach: { readonly [provider: string]: { readonly [name: string]: JsonObject } };
  /** The plugins of the same change whose reviews follow, as far as they are known before this one is decided. */
  readonly following: readonly PreparedPlugin[];
}

/** A reviewer's decision: every requested authority is in one of the two sets. */
export interface Decision {
  readonly grants: { readonly [name: string]: JsonObject };
  readonly denied: readonly string[];
}

/** Decides reviews. */
export interface Decider {
  /**
   * Returns the decision, or undefined when the review was cancelled. Throws when no prompt is possible and flags leave
   * a decision open.
   */
  (request: ReviewRequest): Promise<Decision | undefined>;
  /** Called for each plugin before the first review. Throws when its decision is sure to fail. */
  readonly check?: (plugin: PreparedPlugin) => void;
}

/**
 * Asks for every plugin that needs a review; returns false when a review was cancelled. Updates the plugins in place.
 * Without a prompt it collects every open decision, treats each open request as granted so that later plugins can be
 * examined, and throws a single error for all of them.
 */
export async function decideAll(
  prepared: Prepared,
  previous: Previous,
  requirements: { readonly [id: string]: string },
  decider: Decider,
  asked: ReadonlySet<string> = new Set(),
): Promise<boolean> {
  const open: ReviewNeeded[] = [];
  if (decider.check !== undefined) {
    for (const id of prepared.order) {
      const plugin = prepared.plugins[id];
      if (reasonsFor(id, prepared, previous, asked).length > 0) decider.check(plugin);
    }
  }
  for (const request of reviewRequests(prepared, previous, requirements, asked)) {
    const decision = await decider(request).catch((error) => {
      if (!(error instanceof ReviewNeeded)) throw error;
      open.push(error);
      return error.whole;
    });
    if (decision === undefined) return false;
    request.plugin.grants = { ...decision.grants };
    request.plugin.denied = [...decision.denied];
  }
  if (open.length > 0) throw allNeeded(open);
  return true;
}

/** The reviews that are needed, lazily: each is computed when those before it are decided. */
function* reviewRequests(
  prepared: Prepared,
  previous: Previous,
  requirements: { readonly [id: string]: string },
  asked: ReadonlySet<string> = new Set(),
): Generator<ReviewRequest> {
  for (const [k, id] of prepared.order.entries()) {
    const plugin = prepared.plugins[id];
    const before = previous.reviewed.get(id);
    const reasons = reasonsFor(id, prepared, previous, asked);
    if (reasons.length === 0) continue;
    const following = prepared.order.slice(k + 1).filter((other) =>
      reasonsFor(other, prepared, previous, asked).length > 0
    );
    yield {
      plugin,
      reasons,
      requiredBy: Object.keys(prepared.plugins).filter((other) => id in prepared.plugins[other].definition.requires),
      direct: Object.hasOwn(requirements, id),
      ...(before === undefined ? {} : { before: before.package.version }),
      beforeRequests: before?.plugin.definition.authorities ?? [],
      ...worldBefore(before),
      reach: reachOf(id, prepared.plugins),
      following: following.map((other) => prepared.plugins[other]),
    };
  }
}

/** Why a plugin needs a review, given the decisions so far; none if it needs no review. */
function reasonsFor(
  id: string,
  prepared: Prepared,
  previous: Previous,
  asked: ReadonlySet<string>,
): ReviewReason[] {
  const plugin = prepared.plugins[id];
  const before = previous.reviewed.get(id);
  const reasons = [...reviewReasons(id, plugin, prepared.packages[plugin.package], prepared.plugins, before)];
  if (asked.has(id)) reasons.push({ rule: "asked", text: "a review was requested" });
  const undecided = plugin.definition.authorities.some((a) =>
    !(a.name in plugin.grants) && !plugin.denied.includes(a.name)
  );
  if (reasons.length === 0 && undecided) {
    reasons.push({ rule: "wider-request", text: "some of its requests were never decided" });
  }
  return reasons;
}

function worldBefore(before: Reviewed | undefined): { readonly beforeWorld?: DefinedWorld } {
  const world = before?.plugin.definition.world;
  return world === undefined ? {} : { beforeWorld: world };
}

/** The flags that decide. */
interface DecisionFlags {
  readonly allow: readonly string[];
  readonly deny: readonly string[];
  readonly allowRequested: boolean;
  /** The command line so far, as the prefix of the suggested one. */
  readonly command: string;
}

interface Rule {
  readonly id?: string;
  readonly name: string;
  readonly scope?: string;
  used: boolean;
  readonly text: string;
}

/** A decider that follows flags, and asks `otherwise` (or fails with exit 4) for requests that they leave open. */
export function deciderFromFlags(
  flags: DecisionFlags,
  otherwise?: Decider,
): { decide: Decider; unused: () => string[] } {
  const allow = flags.allow.map((text) => parseRule(text, "--allow"));
  const deny = flags.deny.map((text) => parseRule(text, "--deny"));
  const decide = async (request: ReviewRequest): Promise<Decision | undefined> => {
    const { plugin } = request;
    const grants: { [name: string]: JsonObject } = Object.create(null);
    const denied: string[] = [];
    const open: AuthorityRequest[] = [];
    for (const asked of plugin.definition.authorities) {
      const denies = match(deny, plugin.id, asked.name);
      const allows = match(allow, plugin.id, asked.name);
      const carried = plugin.grants[asked.name];
      const known = request.reasons.every((r) =>
        r.rule !== "asked" && r.rule !== "edited" && r.rule !== "unaccepted" && r.rule !== "publisher" &&
        r.rule !== "registry"
      );
      if (denies !== undefined) {
        requireOptional(asked, plugin.id, denies.text);
        denied.push(asked.name);
      } else if (allows !== undefined) grants[asked.name] = grantFrom(asked, allows.scope, allows.text);
      else if (flags.allowRequested && asked.name !== "host.code") {
        grants[asked.name] = carried ?? fullGrant(findAuthority(asked.name)!.scope, scopeOf(asked));
      } else if (carried !== undefined && known && !isWider(asked, request)) grants[asked.name] = carried;
      else if (plugin.denied.includes(asked.name) && known && asked.mode === "optional") denied.push(asked.name);
      else open.push(asked);
    }
    // Larger reach through providers is a decision even when the plugin itself asks for nothing new.
    const reachesAuthority = Object.values(request.reach).some((grants) => Object.keys(grants).length > 0);
    const reachOpen = !flags.allowRequested &&
      request.reasons.some((r) => r.rule === "reach" || (r.rule === "unaccepted" && reachesAuthority)) &&
      !allow.some((r) => r.id === plugin.id && r.used);
    if (open.length === 0 && !reachOpen) return { grants, denied };
    if (otherwise !== undefined) return await otherwise(request);
    throw new ReviewNeeded(request, open, flags.command, { grants, denied });
  };
  /** A denial with which a plugin would never run fails before anything is asked. */
  const check = ({ id, definition }: PreparedPlugin): void => {
    for (const request of definition.authorities) {
      const denies = match(deny, id, request.name);
      if (denies !== undefined) requireOptional(request, id, denies.text);
    }
  };
  return {
    decide: Object.assign(decide, { check }),
    unused: () => [...allow, ...deny].filter((r) => !r.used).map((r) => r.text),
  };
}

/** Throws for a denial with which the plugin would never run. */
function requireOptional({ name, mode }: AuthorityRequest, id: string, rule: string): void {
  if (mode === "optional") return;
  throw fail("usage.required", `${rule}: ${id} requires ${name} and never runs without it`, {
    help: "grant it, or leave the plugin out; deny it for one plugin only with --deny <plugin id>=<authority>",
  });
}

/** True when this request was not part of the last review, or asks for more. */
function isWider(asked: AuthorityRequest, request: ReviewRequest): boolean {
  const was = request.beforeRequests.find((a) => a.name === asked.name);
  return was === undefined ||
    widerThan(findAuthority(asked.name)?.scope ?? "none", scopeOf(was), scopeOf(asked)).length > 0;
}

function match(rules: readonly Rule[], id: string, name: string): Rule | undefined {
  const found = rules.find((r) => r.id === id && r.name === name) ??
    rules.find((r) => r.id === undefined && r.name === name);
  if (found !== undefined) found.used = true;
  return found;
}

/** `name`, `name:scope`, `id=name` or `id=name:scope`. */
function parseRule(text: string, flag: string): Rule {
  const m = /^(?:([^=:]+\/[^=:]+)=)?([a-z][a-z.]*)(?::(.*))?$/s.exec(text);
  const name = m?.[2];
  if (m === null || name === undefined || findAuthority(name) === undefined) {
    throw fail("usage.authority", `${flag} ${JSON.stringify(text)} does not name an authority`, {
      help: `write ${flag} <authority>[:<scope>] or ${flag} <plugin id>=<authority>[:<scope>]`,
    });
  }
  if (name === "host.code") {
    throw fail("usage.authority", "host.code cannot be granted: plugins of kind host are reserved");
  }
  return {
    name,
    text: `${flag} ${text}`,
    used: false,
    ...(m[1] === undefined ? {} : { id: m[1] }),
    ...(m[3] === undefined ? {} : { scope: m[3] }),
  };
}

/** The grant for a request: all of it, or the part that a scope text names. */
export function grantFrom(request: AuthorityRequest, scope: string | undefined, flag: string): JsonObject {
  const kind = findAuthority(request.name)!.scope;
  const asked = scopeOf(request);
  if (scope === undefined || scope === "") return fullGrant(kind, asked);
  const grant = emptyObject();
  const key = listKeyOf(kind);
  const items = scope.split(",").map((item) => item.trim()).filter((item) => item !== "");
  if (kind === "none") throw fail("usage.scope", `${flag}: ${request.name} has no scope`);
  if (kind === "roots") {
    const roots = emptyObject();
    const full = fullGrant(kind, asked).roots as JsonObject;
    for (const item of items) {
      const at = item.indexOf("=");
      const root = at < 0 ? item : item.slice(0, at);
      roots[root] = at < 0 ? full[root] ?? `.${root}` : item.slice(at + 1);
    }
    grant.roots = roots;
  } else if (key !== undefined) grant[key] = items;
  else {
    for (const item of items) {
      const [name, value] = item.split("=");
      grant[name] = Number(value);
    }
    if (kind === "instances") { for (const name of Object.keys(asked)) grant[name] ??= asked[name]; }
  }
  if (request.name === "fs.write") {
    const intoGit = Object.values((grant.roots ?? {}) as { [root: string]: string }).filter(leadsIntoGit);
    if (intoGit.length > 0) {
      throw fail("usage.scope", `${flag}: ${intoGit.join(", ")} is Git's: its files name programs that Git runs`);
    }
  }
  const faults = walkSchema(grant, scopeSchema(kind, "grant")).map((v) => v.message);
  if (faults.length === 0) faults.push(...widerThan(kind, asked, grant).map((f) => f.reason));
  if (faults.length > 0) throw fail("usage.scope", `${flag}: ${faults.join("; ")}`);
  return grant;
}

/** The failure without a prompt: the open decisions and the exact flags that would make them. */
class ReviewNeeded extends ProjectError {
  /** The command line that `waft` was called with. */
  readonly command: string;
  readonly flags: readonly string[];
  /** The decision with every open request granted, to examine the plugins that follow. */
  readonly whole: Decision;

  constructor(request: ReviewRequest, open: readonly AuthorityRequest[], command: string, decided: Decision) {
    const { plugin, reasons } = request;
    const asked = open.length > 0 ? open : plugin.definition.authorities;
    const flags = asked.map((a) => `--allow ${shellQuote(`${plugin.id}=${a.name}${scopeText(a)}`)}`);
    if (flags.length === 0) flags.push("--allow-requested");
    super([
      {
        code: "review.needed",
        severity: "error",
        message: `${plugin.id} ${plugin.release.version} needs a review: ${reasons.map((r) => r.text).join("; ")}`,
        help: pasteable(command, flags),
      },
      ...open.map((a): Diagnostic => ({
        code: "review.authority",
        severity: "note",
        message: `${plugin.id} asks for ${authorityText(a)} (${a.mode}): ${a.reason.trim().replace(/\s+/gu, " ")}`,
      })),
    ]);
    this.command = command;
    this.flags = flags;
    const grants = { ...decided.grants };
    for (const a of open) grants[a.name] = fullGrant(findAuthority(a.name)!.scope, scopeOf(a));
    this.whole = { grants, denied: decided.denied };
  }
}

/** An authority with the whole scope that would be granted. */
function authorityText({ name, scope }: AuthorityRequest): string {
  const kind = findAuthority(name)?.scope ?? "none";
  return `${name} ${describeScope(fullGrant(kind, scope ?? emptyObject()))}`.trim();
}

function pasteable(command: string, flags: readonly string[]): string {
  return `review it at a terminal, or decide with flags: ${command} ${flags.join(" ")}`;
}

/** Combines the needed reviews into one failure, which ends with one command line for all. */
function allNeeded(open: readonly ReviewNeeded[]): ProjectError {
  if (open.length === 1) return open[0];
  const flags = [...new Set(open.flatMap((each) => each.flags))];
  const last = open.length - 1;
  return new ProjectError(open.flatMap(({ diagnostics: [first, ...asks], command }, i) => {
    const { help: _, ...error } = first;
    const found = [error, ...asks];
    if (i === last) found.push({ ...found.pop()!, help: pasteable(command, flags) });
    return found;
  }));
}

/** The scope of a request in the form that `--allow` takes. */
function scopeText(request: AuthorityRequest): string {
  const kind = findAuthority(request.name)?.scope ?? "none";
  const full = fullGrant(kind, scopeOf(request));
  const key = listKeyOf(kind);
  if (kind === "roots") {
    return `:${Object.entries(full.roots as JsonObject).map(([r, d]) => `${r}=${String(d)}`).join(",")}`;
  }
  if (key !== undefined) return `:${(full[key] as string[]).join(",")}`;
  const pairs = Object.entries(full).map(([k, v]) => `${k}=${String(v)}`);
  return pairs.length === 0 ? "" : `:${pairs.join(",")}`;
}

/** Quotes text as a single word of a POSIX shell. */
export function shellQuote(text: string): string {
  return /^[A-Za-z0-9_.,:=@%+/~^-]+$/.test(text) && !text.startsWith("~") ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
