/**
 * `plugin check`: verifies that every statement of the lockfile still holds.
 *
 * In: a project. Out: one line per group of checks (lockfile, artifacts, engines, policy, links, registry) and
 * findings. Works with a broken lockfile, which is then the first and only failed check. Online, it also checks every
 * digest against the registry (which detects a poisoned lockfile), the registry's signatures, and yanks. `--offline`
 * skips these checks and says so.
 */
import { sameBytes } from "../../base/atomic_write.ts";
import { type Diagnostic, ProjectError } from "../../base/diagnostic.ts";
import { checkLinks } from "../../definitions/link_check.ts";
import { authorityHolders, authorityState } from "../../lockfile/held_authority.ts";
import type { Lockfile } from "../../lockfile/lock_schema.ts";
import { writeLockfile } from "../../lockfile/lock_write.ts";
import { InspectionError } from "../../definitions/module_inspector.ts";
import { linkPlugin, missingAuthorities } from "../../plugins/plugin_grants.ts";
import { missingLock, readProject, requireManifest, requirementsOf } from "../../project.ts";
import { TrustStore } from "../../packages/trust_store.ts";
import { search } from "../../packages/resolve.ts";
import { LOCK_FILE } from "../../base/constants.ts";
import type { Release } from "../../packages/source.ts";
import { engineSatisfies, satisfies } from "../../base/version.ts";
import { type OpsContext, SourceSet } from "../../packages/context.ts";
import { OciSource } from "../../packages/source_oci.ts";
import { RegistrySource } from "../../packages/source_registry.ts";
import { fetchPackage, promisedPlugin } from "../../packages/fetch.ts";
import { verifyRelease } from "./verify_release.ts";

/** A group of checks and its outcome. */
export interface CheckLine {
  readonly name: string;
  readonly status: "ok" | "warning" | "failed" | "skipped";
  readonly detail: string;
}

/** The outcome. */
export interface CheckResult {
  readonly checks: readonly CheckLine[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Checks a project. */
export async function checkProject(context: OpsContext, root: string): Promise<CheckResult> {
  const checks: CheckLine[] = [];
  const diagnostics: Diagnostic[] = [];
  const done: Done = (name, found, detail, warned = detail) => {
    diagnostics.push(...found);
    const errors = found.filter((d) => d.severity === "error").length;
    const warnings = found.length - errors;
    const status = errors > 0 ? "failed" : warnings > 0 ? "warning" : "ok";
    const count = errors > 0 ? `${errors} error${errors === 1 ? "" : "s"}` : warnings > 0 ? warned : detail;
    checks.push({ name, status, detail: count });
  };
  const state = await readProject(root, context.files);
  if (state.manifest === undefined) {
    done("manifest", state.manifestDiagnostics, "");
    return { checks, diagnostics };
  }
  const requirements = Object.keys(requirementsOf(requireManifest(state).manifest)).length;
  done("manifest", [], `${requirements} requirement${requirements === 1 ? "" : "s"}`);
  if (state.lock === undefined) {
    if (requirements > 0) done("lockfile", [missingLock()], "");
    else checks.push({ name: "lockfile", status: "ok", detail: "none needed" });
    return { checks, diagnostics };
  }
  const lock = state.lock.lockfile;
  if (lock === undefined) {
    done("lockfile", state.lock.diagnostics, "");
    return { checks, diagnostics };
  }
  const canonical = sameBytes(writeLockfile(lock), state.lockBytes);
  const count = Object.keys(lock.plugins).length;
  done(
    "lockfile",
    canonical ? [] : [{
      code: "lock.format",
      severity: "warning",
      message: `${LOCK_FILE} is valid but not in canonical form`,
      file: LOCK_FILE,
      help: "run `waft add` to rewrite it",
    }],
    `${count} plugin${count === 1 ? "" : "s"}${canonical ? ", canonical" : ""}`,
  );
  done("engines", engineFindings(context, lock), `waft ${context.engines.waft ?? ""}, ${context.platform}`);
  done(
    "policy",
    policyFindings(context, lock),
    context.machine.policyFile === undefined ? "none" : `${context.machine.policy.deny.length} denied`,
  );
  const { wasi } = lock.guest;
  if (wasi !== undefined) {
    done("wasi", [], wasi.length === 0 ? "guests may use nothing of it" : `only ${wasi.join(", ")}`);
  }
  const holders = authorityHolders(authorityState(lock));
  const store = new TrustStore(context);
  const uncovered = (await store.uncovered(root, holders)).map(({ id }) => id);
  const groups = await store.uncoveredGroups(root, wasi);
  if (groups.length > 0) uncovered.push(`guests' use of ${groups.join(" ")}`);
  checks.push({
    name: "accepted",
    status: uncovered.length > 0 ? "warning" : "ok",
    detail: uncovered.length > 0
      ? `not on this machine: ${uncovered.join(", ")} (\`waft trust\`)`
      : `${holders.length} with authority`,
  });
  await checkArtifacts(context, root, lock, checks, done);
  if (context.offline) checks.push({ name: "registry", status: "skipped", detail: "--offline" });
  else {
    const fromRegistry = Object.values(lock.packages).some(({ source }) => source.kind !== "path");
    done(
      "registry",
      await registryFindings(context, root, lock),
      fromRegistry
        ? "digests agree, signatures are good, logs have only grown, nothing is yanked"
        : "no plugin comes from one",
      "digests and signatures are good; see the warnings",
    );
  }
  return { checks, diagnostics };
}

/** Adds a group of checks; `warned` is its detail when there are warnings. */
type Done = (name: string, found: readonly Diagnostic[], detail: string, warned?: string) => void;

function engineFindings(context: OpsContext, lock: Lockfile): Diagnostic[] {
  const found: Diagnostic[] = [];
  for (const [id, plugin] of Object.entries(lock.plugins)) {
    const { engines, platforms } = plugin.definition.compatibility;
    for (const [name, range] of Object.entries(engines)) {
      const version = context.engines[name];
      if (version !== undefined && !engineSatisfies(version, range)) {
        found.push({
          code: "incompatible.engine",
          severity: "error",
          message: `${id} needs ${name} ${range}; this is ${version}`,
          help: `waft plugin update ${id}, or install another runtime`,
        });
      }
    }
    if (platforms.length > 0 && !platforms.includes(context.platform)) {
      found.push({
        code: "incompatible.platform",
        severity: "error",
        message: `${id} is for ${platforms.join(", ")}; this is ${context.platform}`,
      });
    }
  }
  return found;
}

function policyFindings(context: OpsContext, lock: Lockfile): Diagnostic[] {
  const { deny } = context.machine.policy;
  const found: Diagnostic[] = [];
  for (const [id, plugin] of Object.entries(lock.plugins)) {
    const missing = missingAuthorities(plugin, deny);
    for (const name of missing) {
      const byPolicy = name in plugin.grants;
      found.push({
        code: byPolicy ? "policy.denied" : "authority.denied",
        severity: "error",
        message: `${id} requires ${name}, which ${byPolicy ? "this machine's policy" : "the review"} denies`,
        ...(byPolicy ? {} : { help: `run \`waft plugin grant ${id}\`` }),
      });
    }
    for (const name of Object.keys(plugin.grants)) {
      if (deny.includes(name) && !missing.includes(name)) {
        found.push({
          code: "policy.denied",
          severity: "warning",
          message: `${id} was granted ${name}, which this machine's policy denies`,
        });
      }
    }
  }
  return found;
}

async function checkArtifacts(
  context: OpsContext,
  root: string,
  lock: Lockfile,
  checks: CheckLine[],
  done: Done,
): Promise<void> {
  const sources = new SourceSet(context, root);
  const found: Diagnostic[] = [];
  const links: Diagnostic[] = [];
  let downloaded = 0;
  let imports = 0;
  const packages = new Set<string>();
  for (const [id, plugin] of Object.entries(lock.plugins)) {
    const pack = lock.packages[plugin.package];
    const release: Release = {
      id,
      version: pack.version,
      package: plugin.package,
      definitionDigest: plugin.definitionDigest,
      requires: plugin.definition.requires,
      compatibility: plugin.definition.compatibility,
      artifact: pack.artifact,
    };
    try {
      const source = sources.locked(pack.source);
      if (pack.source.kind === "path") {
        const now = await source.releases(id);
        if (now?.[0]?.artifact.digest !== pack.artifact.digest) {
          found.push({
            code: "lock.path-changed",
            severity: "error",
            message: `${plugin.package} in ${pack.source.path} changed since it was locked`,
            help: "run `waft add`",
          });
          continue;
        }
      }
      const fetched = await fetchPackage(context, release, source);
      if (fetched.downloaded && !packages.has(plugin.package) && pack.source.kind !== "path") downloaded++;
      packages.add(plugin.package);
      const held = promisedPlugin(fetched.opened, release);
      if (held.entry.digest !== plugin.entry.digest || held.entry.path !== plugin.entry.path) {
        found.push({
          code: "integrity.entry",
          severity: "error",
          message: `the module of ${id} is not the one that is locked`,
        });
        continue;
      }
      if (context.inspect === undefined) continue;
      const module = await context.inspect(held.bytes);
      imports += module.imports.length;
      links.push(...checkLinks(plugin.definition, module, plugin.entry.path));
      links.push(...linkPlugin(plugin, module.imports, context.machine.policy.deny).diagnostics);
    } catch (error) {
      if (error instanceof InspectionError) {
        links.push({
          code: "link.module",
          severity: "error",
          message: `${id}: ${plugin.entry.path} is not a valid module: ${error.message}`,
        });
      } else if (error instanceof ProjectError) found.push(...error.diagnostics);
      else throw error;
    }
  }
  done("artifacts", found, `${packages.size} verified, ${downloaded} downloaded`);
  if (context.inspect === undefined) done("links", [], "not checked: this build cannot inspect modules yet");
  else if (found.length > 0 && links.length === 0) {
    checks.push({ name: "links", status: "skipped", detail: "the artifacts above must be right first" });
  } else done("links", links, `${imports} import${imports === 1 ? "" : "s"}, all granted or bound`);
}

async function registryFindings(context: OpsContext, root: string, lock: Lockfile): Promise<Diagnostic[]> {
  const sources = new SourceSet(context, root);
  const found: Diagnostic[] = [];
  for (const [id, plugin] of Object.entries(lock.plugins)) {
    const pack = lock.packages[plugin.package];
    if (pack.source.kind === "path") continue;
    try {
      const source = sources.locked(pack.source);
      if (source instanceof OciSource) await source.verify();
      const releases = await source.releases(id);
      const release = releases?.find((r) => r.version === pack.version);
      if (releases === undefined || release === undefined) {
        found.push({
          code: "registry.removed",
          severity: "warning",
          message: `${source.name} does not list ${id} ${pack.version} any more`,
        });
      } else if (
        release.artifact.digest !== pack.artifact.digest || release.definitionDigest !== plugin.definitionDigest
      ) {
        found.push({
          code: "integrity.disagrees",
          severity: "error",
          message:
            `${source.name} says that ${id} ${pack.version} is ${release.artifact.digest}; the lockfile says ${pack.artifact.digest}`,
          help: "find out who changed the lockfile or the release before you run it",
        });
      } else {
        if (source instanceof RegistrySource) await verifyRelease(context, source, release, true);
        if (release.deprecated !== undefined) {
          found.push({
            code: "registry.deprecated",
            severity: "warning",
            message: `${id} ${pack.version} is deprecated: ${release.deprecated}`,
          });
        }
        if (release.yanked !== undefined) found.push(await yankFinding(id, pack.version, release, releases, lock));
      }
    } catch (error) {
      if (!(error instanceof ProjectError)) throw error;
      found.push(...error.diagnostics);
    }
  }
  return found;
}

async function yankFinding(
  id: string,
  version: string,
  release: Release,
  releases: readonly Release[],
  lock: Lockfile,
): Promise<Diagnostic> {
  const ranges = [lock.requirements[id], ...Object.values(lock.plugins).map((p) => p.definition.requires[id])].filter((
    r,
  ) => r !== undefined);
  const outcome = await search({ requirements: { [id]: "*" } }, {
    load: (ids) =>
      Promise.resolve(
        new Map(ids.map((i) => [
          i,
          i === id
            ? releases.map((r) => ({ ...r, requires: {} })).filter((r) =>
              ranges.every((range) => satisfies(r.version, range))
            )
            : [],
        ])),
      ),
  });
  const next = "chosen" in outcome ? outcome.chosen.get(id)?.version : undefined;
  const fits = next === undefined ? "" : `; ${next} fits ${[...new Set(ranges)].join(" and ")}`;
  return {
    code: "registry.yanked",
    severity: "warning",
    message: `${id} ${version} was yanked (${release.yanked!.severity}: ${release.yanked!.reason})${fits}`,
    ...(next === undefined ? {} : { help: `waft plugin update ${id}` }),
  };
}
