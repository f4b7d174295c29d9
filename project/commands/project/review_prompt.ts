/**
 * The review prompt at a terminal.
 *
 * In: review requests. Out: the user's decisions. Pending input is discarded before each question, so earlier
 * typing or pasting cannot answer it; the default is to allow nothing. Several plugins begin with one summary, and can
 * be allowed together; when one is refused, the answers before it are kept until that is confirmed. Loaded only for an
 * open question.
 */
import { cancel, confirm, isCancel, log, multiselect, select, text } from "@clack/prompts";
import process from "node:process";
import { findAuthority, fullGrant } from "../../definitions/authorities.ts";
import { type AuthorityRequest, scopeOf } from "../../definitions/definition.ts";
import type { JsonObject } from "../../base/json_read.ts";
import type { Decider, Decision, ReviewRequest } from "../../ops/project/decide.ts";
import { grantFrom } from "../../ops/project/decide.ts";
import { escapeHostile } from "../../base/diagnostic.ts";
import { type Palette, safeHint, safeProse } from "../../base/terminal.ts";
import { drainInput, showWhole } from "../terminal_input.ts";
import { explainAuthorities, reviewText, summaryText } from "./change_output.ts";

const output = process.stderr;

/** A decider that asks at the terminal. */
export function promptDecider(colors: Palette): Decider {
  /** Plugins with a decision, and those that one answer allowed together with an earlier plugin. */
  const decided: string[] = [];
  const together = new Set<string>();
  return async (request) => {
    const all = [request.plugin, ...request.following];
    if (decided.length === 0 && all.length > 1) await showWhole(summaryText(all, colors, output.columns));
    await showWhole(reviewText(request, colors, Date.now(), output.columns));
    for (;;) {
      await drainInput();
      if (together.has(request.plugin.id)) {
        const decision = await withScopes(request, request.plugin.definition.authorities);
        if (decision !== undefined) {
          decided.push(request.plugin.id);
          return decision;
        }
        together.clear();
      }
      const needed = request.plugin.definition.authorities.some((a) => a.mode === "required");
      const answer = await select({
        message: `Allow ${request.plugin.id}?`,
        output,
        initialValue: "cancel",
        options: [
          ...(all.length > 1
            ? [{ value: "together", label: `everything that all ${all.length} plugins request` }]
            : []),
          { value: "all", label: "everything that it requests" },
          ...(request.plugin.definition.authorities.length > 1 ? [{ value: "select", label: "select" }] : []),
          ...(needed || request.plugin.definition.authorities.length === 0
            ? []
            : [{ value: "none", label: "nothing, but add it" }]),
          { value: "help", label: "explain the authorities" },
          { value: "cancel", label: "no, change nothing" },
        ],
      });
      if (isCancel(answer) || answer === "cancel") {
        if (decided.length > 0 && !await confirmsDropping(decided)) continue;
        cancel("Nothing was changed.", { output });
        return undefined;
      }
      if (answer === "help") {
        process.stderr.write(`${explainAuthorities(request.plugin.definition.authorities, output.columns)}\n`);
        continue;
      }
      if (answer === "together") { for (const { id } of all) together.add(id); }
      const chosen = answer === "all" || answer === "together"
        ? request.plugin.definition.authorities
        : answer === "none"
        ? []
        : await chooseAuthorities(request);
      const decision = chosen === undefined ? undefined : await withScopes(request, chosen);
      if (decision !== undefined) {
        decided.push(request.plugin.id);
        return decision;
      }
      together.clear();
    }
  };
}

/** Asks whether the answers about earlier plugins are to be dropped, too. */
async function confirmsDropping(decided: readonly string[]): Promise<boolean> {
  await drainInput();
  const answer = await confirm({
    message: `Drop the answers about ${decided.join(", ")}, too?`,
    output,
    active: "yes, change nothing",
    inactive: "no, back to the review",
    initialValue: true,
  });
  return isCancel(answer) || answer;
}

/** Asks which authorities are granted, until all that the plugin requires are among them. */
async function chooseAuthorities(request: ReviewRequest): Promise<AuthorityRequest[] | undefined> {
  const { id, definition: { authorities } } = request.plugin;
  for (;;) {
    const chosen = await askAuthorities(authorities);
    const missing = authorities.filter((a) => a.mode === "required" && chosen?.includes(a) === false);
    if (missing.length === 0) return chosen;
    log.warn(`${id} never runs without ${missing.map((a) => a.name).join(" and ")}: select it, or cancel with Escape`, {
      output,
    });
  }
}

async function askAuthorities(authorities: readonly AuthorityRequest[]): Promise<AuthorityRequest[] | undefined> {
  const names = await multiselect({
    message: "Allow which? (space selects, enter confirms)",
    output,
    required: false,
    initialValues: authorities.filter((a) => a.mode === "required").map((a) => a.name),
    options: authorities.map((a) => ({
      value: a.name,
      label: a.name,
      hint: `${a.mode}: ${safeHint(safeProse(a.reason), 100)}`,
    })),
  });
  if (isCancel(names)) return undefined;
  return authorities.filter((a) => names.includes(a.name));
}

/**
 * Asks for the host directory of each root, once for all authorities that name it. Every other scope is granted as
 * requested.
 */
async function withScopes(request: ReviewRequest, chosen: readonly AuthorityRequest[]): Promise<Decision | undefined> {
  const grants: { [name: string]: JsonObject } = Object.create(null);
  const { plugin } = request;
  const answered = new Map<string, string>();
  for (const a of chosen) {
    const kind = findAuthority(a.name)!.scope;
    const full = fullGrant(kind, scopeOf(a));
    grants[a.name] = full;
    if (kind !== "roots") continue;
    const before = plugin.grants[a.name]?.roots as JsonObject | undefined;
    const pairs: string[] = [];
    for (const [root, proposed] of Object.entries(full.roots as JsonObject)) {
      const earlier = answered.get(root);
      if (earlier !== undefined) {
        pairs.push(`${root}=${earlier}`);
        continue;
      }
      await drainInput();
      const last = String(before?.[root] ?? proposed);
      // A directory that the terminal would show as another one is not proposed.
      const known = escapeHostile(last) === last ? last : String(proposed);
      const names = chosen.filter((c) => rootsOf(c).includes(root)).map((c) => c.name).join(" and ");
      const directory = await text({
        message: `${names}: directory of this machine for ${root} of ${plugin.id}?`,
        output,
        placeholder: known,
        defaultValue: known,
      });
      if (isCancel(directory)) return undefined;
      answered.set(root, directory);
      pairs.push(`${root}=${directory}`);
    }
    grants[a.name] = grantFrom(a, pairs.join(","), a.name);
  }
  return { grants, denied: plugin.definition.authorities.filter((a) => !(a.name in grants)).map((a) => a.name) };
}

function rootsOf(request: AuthorityRequest): string[] {
  if (findAuthority(request.name)!.scope !== "roots") return [];
  return Object.keys(fullGrant("roots", scopeOf(request)).roots as JsonObject);
}
