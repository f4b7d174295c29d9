/**
 * A plugin's definition and a publication as readable text; everything from outside is escaped.
 */
import { describeScope } from "../../definitions/authorities.ts";
import { contractNamespace, scopeOf } from "../../definitions/definition.ts";
import { formatType } from "../../definitions/module_inspector.ts";
import { worldRows } from "../../definitions/world_rows.ts";
import type { InspectResult } from "../../ops/project/inspect.ts";
import type { PublishResult } from "../../ops/project/publish.ts";
import { layoutTable, safe, safeProse, type TextOutput } from "../../base/terminal.ts";

/** One inspected plugin as text. */
export function inspectText(p: InspectResult, { colors, columns }: TextOutput): string {
  const d = p.definition;
  const lines = [
    `${colors.bold(d.id)} ${d.version}   ${d.kind}   ${safe(d.name)}${
      d.stability === undefined ? "" : `   ${d.stability}`
    }`,
  ];
  lines.push(`  ${safeProse(d.description)}`);
  const facts: string[][] = [["  package", p.package], ["  license", safe(d.provenance.license)], [
    "  repository",
    safe(d.provenance.repository),
  ]];
  if (p.publisher !== undefined) {
    facts.push(["  publisher", `${safe(p.publisher)}${p.publishedAt === undefined ? "" : `, ${p.publishedAt}`}`]);
  }
  facts.push(["  module", `${p.entry.path}   ${p.entry.size} bytes   ${p.entry.digest}`], [
    "  definition",
    p.definitionDigest,
  ]);
  const engines = Object.entries(d.compatibility.engines).map(([name, range]) => `${name} ${range}`).join(", ");
  if (engines !== "" || d.compatibility.platforms.length > 0) {
    facts.push(["  needs", [engines, d.compatibility.platforms.join(", ")].filter((t) => t !== "").join("; ")]);
  }
  for (const [id, range] of Object.entries(d.requires)) facts.push(["  requires", `${id} ${range}`]);
  lines.push(...layoutTable(facts, columns));
  lines.push("authorities:");
  if (d.authorities.length === 0) lines.push("  none");
  lines.push(...layoutTable(
    d.authorities.map((a) => {
      const decided = p.grants === undefined
        ? ""
        : a.name in p.grants
        ? `granted ${describeScope(p.grants[a.name])}`.trim()
        : "denied";
      return [`  ${a.name}`, safe(describeScope(scopeOf(a))), a.mode, safe(decided), safeProse(a.reason)];
    }),
    columns,
  ));
  const rows = worldRows(d);
  if (rows.length > 0) {
    lines.push("world:", ...layoutTable(rows.map(({ wit, note }) => [`  ${safe(wit)}`, safe(note)]), columns));
  }
  lines.push(...exportedFunctions(p));
  for (const side of ["provides", "consumes"] as const) {
    for (const c of d[side]) {
      const extra = "mode" in c
        ? ` (${c.mode})`
        : c.namespaces === undefined || c.namespaces.length === 0
        ? ""
        : `, also as ${c.namespaces.join(", ")}`;
      lines.push(`${side} ${contractNamespace(c)}${safe(extra)}`);
      lines.push(...layoutTable(c.functions.map((f) => [`  ${safe(f.name)}`, formatType(f)]), columns));
    }
  }
  return lines.join("\n");
}

/** The functions of the interfaces that a component exports, in the words of WIT. */
function exportedFunctions({ module }: InspectResult): string[] {
  return (module?.world?.exports ?? []).flatMap(({ name, functions }) => [
    `interface ${safe(name)}`,
    ...functions.map((f) => `  ${safe(f.name)}: ${safe(f.signature)};`),
  ]);
}

/** A publication. */
export function publishText(p: PublishResult, { colors, columns }: TextOutput): string {
  const lines = [`${colors.bold(p.package)} ${p.version}   (version from ${p.versionSource})   to ${p.registry}`];
  lines.push(...layoutTable(p.files.map((f) => [`  ${safe(f.path)}`, `${f.size} bytes`, f.digest]), columns));
  lines.push(`archive ${p.artifact.size} bytes   ${p.artifact.digest}`);
  for (const plugin of p.plugins) {
    lines.push(`plugin ${plugin.id}   ${plugin.entry}   ${plugin.definitionDigest}`);
    lines.push(`  authorities: ${plugin.authorities.join(", ") || "none"}`);
  }
  lines.push(p.notes === null ? "no release notes" : `release notes: ${p.notes.split("\n").length} lines`);
  if (p.dirty.length > 0) lines.push(colors.yellow(`not committed: ${p.dirty.map((path) => safe(path)).join(", ")}`));
  if (!p.linksChecked) lines.push("links were not checked: this build cannot inspect modules yet");
  lines.push(
    p.dryRun
      ? "Nothing was published (--dry-run)."
      : p.page === undefined
      ? `Published: ${p.registry}`
      : p.created === true
      ? `Published: ${p.page}`
      : `The registry already had this version: ${p.page}`,
  );
  return lines.join("\n");
}
