/**
 * Changes, reviews and findings of the project commands as readable text.
 *
 * In: results of ops. Out: lines; everything that comes from a registry is escaped.
 */
import { EXIT } from "../../base/diagnostic.ts";
import type { JsonObject } from "../../base/json_read.ts";
import { describeScope, findAuthority, fullGrant } from "../../definitions/authorities.ts";
import { type AuthorityRequest, type DefinedWorld, type Definition, scopeOf } from "../../definitions/definition.ts";
import { newImports, worldRows } from "../../definitions/world_rows.ts";
import type { Change } from "../../ops/project/changes.ts";
import type { ChangeResult } from "../../ops/project/change.ts";
import type { ReviewRequest } from "../../ops/project/decide.ts";
import type { PreparedPlugin } from "../../ops/project/prepare.ts";
import { layoutTable, type Palette, safe, safeProse, wrapLine } from "../../base/terminal.ts";
import type { CommandEnvironment, GlobalFlags, Outcome } from "./project_command.ts";

const SIGNS = { add: "+", remove: "-", update: "~", keep: "=" } as const;

/**
 * One line per change. An unchanged plugin has a line only with `all`, or when a newer version was skipped and `passed`
 * asks to report it. `decided` says that grants and denials come from a finished review. Notes wrap at `columns`.
 */
export function changeLines(
  changes: readonly Change[],
  colors: Palette,
  { all, passed = false, decided = false, columns }: {
    readonly all: boolean;
    readonly passed?: boolean;
    readonly decided?: boolean;
    readonly columns?: number | undefined;
  },
): string[] {
  const shown = changes.filter((c) => all || c.action !== "keep" || c.needsReview || (passed && c.skipped.length > 0));
  const rows = shown.map((c) => {
    const sign = SIGNS[c.action];
    const paint = c.action === "add"
      ? colors.green
      : c.action === "remove"
      ? colors.red
      : c.action === "update"
      ? colors.yellow
      : colors.dim;
    const versions = c.action === "update" ? `${c.from} -> ${c.to}` : c.to ?? c.from ?? "";
    const notes = [
      ...c.reasons,
      ...(c.skipped.length === 0
        ? []
        : [`${c.skipped.slice(0, 2).map((s) => `${s.version} skipped: ${s.reason}`).join("; ")}`]),
      decided ? decisionText(c) : authorityText(c),
    ].filter((text) => text !== "");
    return [`${paint(sign)} ${c.id}`, versions, safe(notes.join("; "))];
  });
  return layoutTable(rows, columns);
}

function authorityText(c: Change): string {
  const { added, removed, widened } = c.authority;
  const parts = [...added.map((a) => `+${a}`), ...widened.map((a) => `wider ${a}`), ...removed.map((a) => `-${a}`)];
  if (c.action === "update" && parts.length === 0) return "authority: unchanged";
  return parts.length === 0 ? "" : `authority: ${parts.join(" ")}`;
}

/** The complete grants and denials of a change. */
function decisionText(c: Change): string {
  if (c.action === "keep" && !c.needsReview) return "";
  const granted = Object.keys(c.grants).sort().map((name) => grantText(name, c.grants[name]));
  return [
    ...(granted.length === 0 ? [] : [`granted: ${granted.join(", ")}`]),
    ...(c.denied.length === 0 ? [] : [`denied: ${[...c.denied].sort().join(", ")}`]),
  ].join("; ");
}

/** Lines of release notes that are shown. */
const NOTE_LINES = 30;

/**
 * Release notes of a version, as text. Each line has a bar before it, so that no text of an author looks like one of
 * waft's. `page` says where all of them are.
 */
export function notesLines(title: string, notes: string, columns?: number, most: number = NOTE_LINES): string[] {
  const lines = notes.split(/\r?\n/);
  const shown = lines.slice(0, most).map((line) => safe(line.trimEnd().replaceAll("\t", "  ")));
  const room = columns === undefined ? undefined : Math.max(20, columns - 4);
  const rows = shown.flatMap((line) => wrapLine(line, room).map((row) => `  | ${row}`.trimEnd()));
  const left = lines.length - shown.length;
  return [`  ${title}:`, ...rows, ...(left === 0 ? [] : [`  | … ${left} more line${left === 1 ? "" : "s"}`])];
}

/**
 * The changes as text. With `--verbose` it includes unchanged plugins, and for updates the newer versions that do not
 * fit.
 */
function changeText(
  result: ChangeResult,
  { colors, columns }: CommandEnvironment,
  flags: GlobalFlags,
  tellsPassed: boolean,
): string {
  if (result.cancelled) return "Cancelled: nothing was written.";
  const lines = changeLines(result.changes, colors, {
    all: flags.verbose === true,
    passed: tellsPassed,
    decided: true,
    columns,
  });
  for (const { id, to, notes } of result.changes) {
    if (notes !== undefined) lines.push(...notesLines(`release notes of ${id} ${to}`, notes, columns));
  }
  const stays = result.changes.some((c) => c.skipped.some(({ reason }) => reason.startsWith("outside of ")));
  if (result.written.length > 0) lines.push(`Wrote ${result.written.join(" and ")}.`);
  else if (flags.dryRun === true) lines.push("Nothing was written (--dry-run).");
  else if (tellsPassed && stays) lines.push("No newer version fits the ranges; `waft add <id>@<range>` widens one.");
  else lines.push("Everything is up to date.");
  return lines.join("\n");
}

/** The outcome of a command that changes the lockfile. */
export function changeOutcome(
  result: ChangeResult,
  env: CommandEnvironment,
  flags: GlobalFlags,
  tellsPassed = false,
): Outcome {
  const { warnings, ...data } = result;
  return {
    data,
    diagnostics: warnings,
    text: changeText(result, env, flags, tellsPassed),
    ...(result.cancelled ? { exitCode: EXIT.review } : {}),
  };
}

/** The requests of several plugins, a line for each authority, before their reviews. */
export function summaryText(plugins: readonly PreparedPlugin[], colors: Palette, columns?: number): string {
  const rows = plugins.flatMap(({ id, release, definition }) => {
    const requests = definition.authorities.length === 0 ? [["requests nothing"]] : definition.authorities.map((a) => [
      `${a.name} ${describeScope(fullGrant(findAuthority(a.name)!.scope, scopeOf(a)))}`.trim(),
      a.mode,
    ]);
    return requests.map((request, k) => [k === 0 ? colors.bold(id) : "", k === 0 ? release.version : "", ...request]);
  });
  return [`${plugins.length} plugins need a review:`, ...layoutTable(rows, columns), ""].join("\n");
}

/** The header and requests of one review, formatted for a terminal of `columns`. */
export function reviewText(request: ReviewRequest, colors: Palette, now: number, columns?: number): string {
  const { plugin } = request;
  const { release, definition } = plugin;
  const published = release.publisher === undefined
    ? "from a directory of the project"
    : `published ${release.publishedAt?.slice(0, 10) ?? "at an unknown time"} by ${safe(release.publisher)}`;
  const by = [...(request.direct ? ["you"] : []), ...request.requiredBy].join(", ");
  const lines = wrapLine(
    `${colors.bold(plugin.id)} ${release.version}   ${definition.kind}   ${published}   required by: ${by}`,
    columns,
  );
  // With a label, because a description could be `asks for no authority`.
  if (definition.description !== "") {
    lines.push(...wrapLine(`  description: ${safeProse(definition.description)}`, columns));
  }
  const raw = decodedHost(plugin.id);
  if (raw !== undefined) lines.push(colors.yellow(`  ! the host is written in punycode and reads ${safe(raw)}`));
  if (release.firstPublish === true) lines.push(colors.yellow("  ! this publisher has published nothing else"));
  if (release.publishedAt !== undefined && now - Date.parse(release.publishedAt) < 86_400_000) {
    lines.push(colors.yellow("  ! published less than a day ago"));
  }
  for (const reason of request.reasons) {
    if (reason.rule !== "new") lines.push(...wrapLine(`  review required: ${safe(reason.text)}`, columns));
  }
  lines.push(...layoutTable(
    definition.authorities.map((a) => [
      `  ${requestSign(a, request, colors)} ${a.name}`,
      safe(describeScope(scopeOf(a))),
      a.mode,
      safeProse(a.reason),
    ]),
    columns,
  ));
  if (definition.authorities.length === 0) lines.push("  asks for no authority");
  lines.push(...worldLines(definition, request.beforeWorld, colors, columns));
  const reach = Object.entries(request.reach).map(([id, grants]) =>
    `${id} (${Object.keys(grants).sort().map((name) => grantText(name, grants[name])).join(", ") || "no authority"})`
  );
  if (plugin.notes !== undefined) lines.push(...notesLines("release notes", plugin.notes, columns));
  lines.push(...layoutTable([["  reaches:", reach.length === 0 ? "nothing else" : safe(reach.join(", "))]], columns));
  return lines.join("\n");
}

/** The world of a component; `+` marks a new import. */
function worldLines(
  definition: Definition,
  before: DefinedWorld | undefined,
  colors: Palette,
  columns: number | undefined,
): string[] {
  const rows = worldRows(definition);
  if (rows.length === 0) return [];
  const added = new Set(newImports(before, definition.world).map((name) => `import ${name};`));
  const table = rows.map((
    { wit, note },
  ) => [`    ${added.has(wit) ? colors.green("+") : " "} ${safe(wit)}`, safe(note)]);
  return ["  world:", ...layoutTable(table, columns)];
}

/** An authority with its whole scope. */
function grantText(name: string, scope: JsonObject): string {
  const words = describeScope(scope);
  return words === "" ? name : `${name} ${words}`;
}

/** `+` marks a new request, `~` a wider one, `=` one that was reviewed before. */
function requestSign(a: AuthorityRequest, request: ReviewRequest, colors: Palette): string {
  const was = request.beforeRequests.find((b) => b.name === a.name);
  if (was === undefined) return colors.green("+");
  return describeScope(scopeOf(was)) === describeScope(scopeOf(a)) && was.mode === a.mode ? "=" : colors.yellow("~");
}

/** Explains each authority a plugin requests, for the help of a review. */
export function explainAuthorities(requests: readonly AuthorityRequest[], columns?: number): string {
  const rows = requests.map((a) => [`  ${a.name}`, findAuthority(a.name)?.meaning ?? "unknown"]);
  return layoutTable(rows, columns).join("\n");
}

/** The host of an id as people see it when it is punycode; undefined when it is plain. */
function decodedHost(id: string): string | undefined {
  const host = id.slice(0, id.indexOf("/"));
  if (!/(?:^|\.)xn--/i.test(host)) return undefined;
  return decodeURIComponent(
    host.split(".").map((label) => /^xn--/i.test(label) ? decodePunycode(label.slice(4)) : label).join("."),
  );
}

/** Decodes one label as RFC 3492 specifies; returns a malformed label unchanged. */
function decodePunycode(label: string): string {
  const at = label.lastIndexOf("-");
  const output = at < 0 ? [] : [...label.slice(0, at)].map((c) => c.codePointAt(0)!);
  let n = 128;
  let i = 0;
  let bias = 72;
  let pos = at < 0 ? 0 : at + 1;
  while (pos < label.length) {
    const start = i;
    let weight = 1;
    for (let k = 36;; k += 36) {
      const c = label.charCodeAt(pos++) | 0x20;
      const digit = c >= 0x61 && c <= 0x7a ? c - 0x61 : c >= 0x30 && c <= 0x39 ? c - 0x30 + 26 : -1;
      if (digit < 0) return `xn--${label}`;
      i += digit * weight;
      const t = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias;
      if (digit < t) break;
      weight *= 36 - t;
      if (pos >= label.length || weight > 2 ** 31) return `xn--${label}`;
    }
    const count = output.length + 1;
    let delta = start === 0 ? Math.floor((i - start) / 700) : (i - start) >> 1;
    delta += Math.floor(delta / count);
    let k = 0;
    while (delta > 455) {
      delta = Math.floor(delta / 35);
      k += 36;
    }
    bias = k + Math.floor(36 * delta / (delta + 38));
    n += Math.floor(i / count);
    i %= count;
    if (n > 0x10ffff) return `xn--${label}`;
    output.splice(i++, 0, n);
  }
  return String.fromCodePoint(...output);
}
