/**
 * `plugin inspect` and `plugin catalog`: a readable definition, and a first catalog generated from a module.
 *
 * In: an id of the project, `<id>@<version>` of the registry, or a directory; for the catalog, a package and its
 * modules. Out: the definition with its authorities and its relations to other plugins; or a catalog that fits the
 * module's imports and exports, with the reasons left for the author to write.
 */
import { join, resolve } from "node:path";
import { AUTHORITIES, HOST_FUNCTIONS } from "../../definitions/authorities.ts";
import type { Definition } from "../../definitions/definition.ts";
import { fail } from "../../base/diagnostic.ts";
import { hasRangeShape, isPluginId } from "../../base/grammar.ts";
import type { JsonObject } from "../../base/json_read.ts";
import { requirePluginId } from "../../definitions/plugin_id.ts";
import type { InspectedModule, InspectedWorld, ModuleExport, WorldItem } from "../../definitions/module_inspector.ts";
import { hostInterface, isReservedInterface, splitInterface } from "../../definitions/wit_interfaces.ts";
import { readProject } from "../../project.ts";
import { findProject } from "../../project_root.ts";
import { resolve as resolveVersions } from "../../packages/resolve.ts";
import { CATALOG_FILE, CATALOG_SCHEMA } from "../../base/constants.ts";
import { openDirectory } from "../../packages/source_path.ts";
import { packageManifest } from "../../definitions/catalog.ts";
import { type OpsContext, SourceSet } from "../../packages/context.ts";
import { fetchPackage, inspectEntry, promisedPlugin } from "../../packages/fetch.ts";
import { verifyRelease } from "./verify_release.ts";

/** An inspected plugin. */
export interface InspectResult {
  readonly definition: Definition;
  readonly definitionDigest: string;
  readonly package: string;
  readonly entry: { readonly path: string; readonly digest: string; readonly size: number };
  readonly from: "lockfile" | "registry" | "directory";
  readonly publisher?: string;
  readonly publishedAt?: string;
  /** The grants of this project. */
  readonly grants?: { readonly [name: string]: JsonObject };
  readonly denied?: readonly string[];
  /** Present when this build can inspect modules. */
  readonly module?: InspectedModule;
}

/** Inspects the plugins that a command-line word names; a directory may hold several. */
export async function inspectPlugin(
  context: OpsContext,
  start: string,
  spec: string,
): Promise<readonly InspectResult[]> {
  if (/^(?:\.{1,2}(?:\/|$)|\/)/.test(spec)) {
    const { opened } = await openDirectory(resolve(start, spec), undefined, context.files);
    return await Promise.all(
      Object.values(opened.plugins).map(async (p) => ({
        definition: p.definition,
        definitionDigest: p.digest,
        package: opened.id,
        entry: p.entry,
        from: "directory" as const,
        ...(context.inspect === undefined ? {} : { module: await inspectEntry(context, p.entry.path, p.bytes) }),
      })),
    );
  }
  const at = spec.indexOf("@", 1);
  const id = at < 0 ? spec : spec.slice(0, at);
  requirePluginId(id);
  const root = await findProject(start);
  if (at < 0 && root !== undefined) {
    const lock = (await readProject(root, context.files)).lock?.lockfile;
    const plugin = lock?.plugins[id];
    if (lock !== undefined && plugin !== undefined) {
      const { publisher } = lock.packages[plugin.package];
      return [{
        definition: plugin.definition,
        definitionDigest: plugin.definitionDigest,
        package: plugin.package,
        entry: plugin.entry,
        from: "lockfile",
        grants: plugin.grants,
        denied: plugin.denied,
        ...(publisher === undefined ? {} : { publisher }),
      }];
    }
  }
  const range = at < 0 ? "*" : spec.slice(at + 1);
  if (!hasRangeShape(range)) throw fail("usage.range", `${JSON.stringify(range)} is not a version or range`);
  const source = new SourceSet(context, start).forId(id);
  const { chosen } = await resolveVersions({ requirements: { [id]: range }, allowYanked: true }, {
    // Only this plugin is inspected; its requirements are shown, not resolved.
    load: async (ids) =>
      new Map(
        await Promise.all(
          ids.map(async (i) => [i, (await source.releases(i))?.map((r) => ({ ...r, requires: {} }))] as const),
        ),
      ),
  });
  const version = chosen.get(id)!.version;
  const release = (await source.releases(id))!.find((r) => r.version === version)!;
  // Whoever reads a definition to decide about it must see the signed one.
  await verifyRelease(context, source, release);
  const { opened } = await fetchPackage(context, release, source);
  const plugin = promisedPlugin(opened, release);
  return [{
    definition: plugin.definition,
    definitionDigest: plugin.digest,
    package: opened.id,
    entry: plugin.entry,
    from: "registry",
    ...(release.publisher === undefined ? {} : { publisher: release.publisher }),
    ...(release.publishedAt === undefined ? {} : { publishedAt: release.publishedAt }),
    ...(context.inspect === undefined ? {} : { module: await inspectEntry(context, plugin.entry.path, plugin.bytes) }),
  }];
}

/** The result of scaffolding a catalog. */
export interface CatalogResult {
  readonly file: string;
  readonly text: string;
  readonly written: boolean;
  /** The parts that the author has to write. */
  readonly todo: readonly string[];
}

/** Scaffolds `register/catalog.json` from the imports and exports of a module or component; refuses to overwrite. */
export async function scaffoldCatalog(
  context: OpsContext,
  root: string,
  entry: string,
  dryRun: boolean,
): Promise<CatalogResult> {
  const manifest = await context.files.read(join(root, "waft.json"), 1 << 20);
  const { metadata } = await packageManifest(new Map(manifest === undefined ? [] : [["waft.json", manifest]]));
  const bytes = await context.files.read(join(root, entry), 32 << 20);
  if (bytes === undefined) throw fail("usage.entry", `${entry} does not exist in ${root}`);
  const todo: string[] = [];
  const definition = scaffoldDefinition(metadata.module, await inspectEntry(context, entry, bytes), todo);
  const text = `${JSON.stringify({ $schema: CATALOG_SCHEMA, plugins: [{ entry, definition }] }, null, 2)}\n`;
  const file = join(root, CATALOG_FILE);
  if (!dryRun) {
    await context.files.makeDirectory(join(file, ".."));
    if (!await context.files.create(file, new TextEncoder().encode(text))) {
      throw fail("project.exists", `${CATALOG_FILE} exists already`, {
        file: CATALOG_FILE,
        help: "remove it first, or look at --dry-run",
      });
    }
  }
  return { file: CATALOG_FILE, text, written: !dryRun, todo };
}

/** The definition of a component; the ids of contracts are the author's to choose. */
function scaffoldComponent(id: string, world: InspectedWorld, todo: string[]): object {
  const names = new Set<string>();
  const consumes: object[] = [];
  for (const item of world.imports) {
    const row = hostInterface(item.name);
    if (typeof row !== "string") {
      if (row.authorities[0] !== undefined) names.add(row.authorities[0]);
    } else if (item.kind !== "interface" || isReservedInterface(item.name)) {
      todo.push(`the import "${item.name}" cannot be linked: ${row}`);
    } else {
      todo.push(`name the contract of the import "${item.name}"`);
      consumes.push({ ...contractOf(id, item), mode: "required", functions: coreFunctions(item, todo) });
    }
  }
  const provided = world.exports.filter((e) => e.kind === "interface" && !isReservedInterface(e.name));
  return {
    id,
    world: { imports: world.imports.map((i) => i.name).sort(), exports: world.exports.map((e) => e.name).sort() },
    authorities: scaffoldRequests(names, todo),
    provides: provided.map((item) => ({ ...contractOf(id, item), functions: coreFunctions(item, todo) })),
    consumes,
  };
}

/** A contract for an interface: its id below that of the plugin, and the major version of the interface. */
function contractOf(id: string, { name }: WorldItem): { id: string; major: number; interface: string } {
  const { plain = name, version = "" } = splitInterface(name) ?? {};
  return { id: `${id}/${plain.split("/").at(-1)}`, major: Number(/^\d+/.exec(version)?.[0] ?? 0), interface: name };
}

function coreFunctions({ name, functions }: WorldItem, todo: string[]): object[] {
  return functions.flatMap((f) => {
    if (f.type !== undefined) return [{ name: f.name, ...f.type }];
    todo.push(`core modules cannot call the function "${f.name}" of "${name}": ${f.fault}`);
    return [];
  });
}

function scaffoldRequests(names: ReadonlySet<string>, todo: string[]): object[] {
  for (const name of names) todo.push(`write the reason for ${name}${SCOPED.has(name) ? " and its scope" : ""}`);
  return [...names].sort().map((name) => ({ name, mode: "required", reason: "TODO: say why.", ...SCOPED.get(name) }));
}

function scaffoldDefinition(id: string, module: InspectedModule, todo: string[]): object {
  if (module.world !== undefined) return scaffoldComponent(id, module.world, todo);
  const names = new Set<string>();
  const consumes = new Map<string, { name: string; params: readonly string[]; results: readonly string[] }[]>();
  for (const item of module.imports) {
    const host = HOST_FUNCTIONS.get(`${item.module}#${item.name}`);
    if (host !== undefined) {
      if (host.authorities[0] !== undefined) names.add(host.authorities[0]);
      continue;
    }
    const at = item.module.lastIndexOf("@");
    if (item.type === undefined || at < 0 || !isPluginId(item.module.slice(0, at))) {
      todo.push(`the import "${item.module}" "${item.name}" cannot be linked`);
      continue;
    }
    const list = consumes.get(item.module) ?? [];
    list.push({ name: item.name, ...item.type });
    consumes.set(item.module, list);
  }
  for (const a of AUTHORITIES) {
    if (a.hooks.some((h) => module.exports.some((e) => e.name === `waft:hooks@1#${h}`))) names.add(a.name);
  }
  const provides = new Map<string, { name: string; params: readonly string[]; results: readonly string[] }[]>();
  for (const e of module.exports) provide(e, provides);
  const contract = (namespace: string): { id: string; major: number } => {
    const at = namespace.lastIndexOf("@");
    return { id: namespace.slice(0, at), major: Number(namespace.slice(at + 1)) };
  };
  return {
    id,
    authorities: scaffoldRequests(names, todo),
    provides: [...provides].sort().map(([namespace, functions]) => ({ ...contract(namespace), functions })),
    consumes: [...consumes].sort().map(([namespace, functions]) => ({
      ...contract(namespace),
      mode: "required",
      functions,
    })),
  };
}

/** Placeholders for scopes that only the author knows. */
const SCOPED: ReadonlyMap<string, object> = new Map<string, object>([
  ["caller.call", { scope: { exports: ["TODO"] } }],
  ["guest.env", { scope: { names: ["TODO"] } }],
  ["stdio", { scope: { streams: ["stdout"] } }],
  ["fs.read", { scope: { roots: ["/data"] } }],
  ["fs.write", { scope: { roots: ["/data"] } }],
  ["net.connect", { scope: { hosts: ["example.com:443"] } }],
  ["net.listen", { scope: { hosts: ["127.0.0.1:8080"] } }],
  ["instance.manage", { scope: { maxInstances: 1, maxMemoryBytes: 1048576 } }],
]);

function provide(
  e: ModuleExport,
  provides: Map<string, { name: string; params: readonly string[]; results: readonly string[] }[]>,
): void {
  const m = /^(.+@[0-9]+)#(.+)$/.exec(e.name);
  const namespace = m?.[1];
  if (m === null || namespace === undefined || e.type === undefined || namespace.startsWith("waft:")) return;
  if (!isPluginId(namespace.slice(0, namespace.lastIndexOf("@")))) return;
  const list = provides.get(namespace) ?? [];
  list.push({ name: m[2], ...e.type });
  provides.set(namespace, list);
}
