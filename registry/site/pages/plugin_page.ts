/**
 * One package: description, requested authorities with reasons, contracts, versions, provenance, README.
 */
import { findAuthority } from "../../../project/definitions/authorities.ts";
import { worldRows } from "../../../project/definitions/world_rows.ts";
import { BASE_URL } from "../../../project/base/constants.ts";
import { contractNamespace, type Definition } from "../../../project/definitions/definition.ts";
import { decodedHost, segmentOfId } from "../../names.ts";
import { Problem } from "../../problem.ts";
import { requirePackage } from "../../routes/packages.ts";
import { type Call, versionParam } from "../../services.ts";
import { findRelease, type ReleaseState, type VersionLine } from "../../store/packages.ts";
import { newestOf } from "../../store/releases.ts";
import { layout } from "../layout.ts";
import { type Markup, markup, trusted } from "../markup.ts";
import { notesText, readmeHtml } from "../readme.ts";
import { stabilityBadge } from "./plugins_page.ts";

/** Renders a package at its newest version, or at the one of the address. */
export async function pluginPage(call: Call): Promise<string> {
  const { database } = call.services;
  const { id, summary } = await requirePackage(call);
  const versions = await call.services.lists.versions(id);
  const chosen = call.params.version === undefined
    ? (summary.version === "" ? newestOf(versions.map((v) => v.version))! : summary.version)
    : versionParam(call);
  const release = await findRelease(database, id, chosen);
  if (release === undefined) throw new Problem("version.unknown", `${id} has no version ${chosen}`);
  const { metadata } = release;
  const body = markup`
    <div class="split right">
      <main id="main">
    <h1>${metadata.name}</h1>
    <p class="title"><code>${id}</code> ${release.version} ${
    metadata.stability !== undefined &&
    stabilityBadge(metadata.stability)
  }</p>
    ${
    release.yanked !== undefined &&
    markup`<p class="banner"><strong>This version was yanked</strong> (${release.yanked.severity}): ${release.yanked.reason}</p>`
  }
    ${
    release.deprecated !== undefined &&
    markup`<p class="banner"><strong>Deprecated:</strong> ${release.deprecated}</p>`
  }
    ${
    metadata.stability === "deprecated" &&
    markup`<p class="banner">Its authors have deprecated this package and no longer maintain it.</p>`
  }
    ${
    decodedHost(id) !== undefined &&
    markup`<p class="banner">The host of this id reads “${decodedHost(id)}”. Check every letter.</p>`
  }
    <p class="lead">${metadata.description}</p>
    <div class="code"><pre tabindex="0"><code>${
    addCommand(call, id, release.version === summary.version ? undefined : release.version)
  }</code></pre></div>
    ${release.plugins.map((p) => pluginSection(p.definition, release.plugins.length > 1))}
    ${
    release.notes !== "" && markup`
      <h2 id="notes">Release notes of ${release.version}</h2>
      <pre class="notes" tabindex="0">${notesText(release.notes)}</pre>
    `
  }
    <h2 id="versions">Versions</h2>
    ${versionTable(id, versions, release.version)}
    ${
    release.readme !== "" && markup`
      <h2 id="readme">README</h2>
      <div class="prose">${trusted(readmeHtml(release))}</div>
    `
  }
      </main>
      <aside aria-label="Facts">${facts(id, release, summary.installs)}</aside>
    </div>
  `;
  return layout(call.services, {
    title: metadata.name,
    description: metadata.description,
    section: "plugins",
    canonical: `/plugins/${segmentOfId(id)}`,
    hidden: call.params.version !== undefined,
    body,
  });
}

/**
 * The command that installs the package: it names a version that is not the newest, and a registry that is not the
 * default.
 */
function addCommand(call: Call, id: string, version: string | undefined): string {
  const { baseUrl } = call.services.settings;
  const registry = baseUrl === BASE_URL ? "" : ` --registry ${baseUrl}`;
  return `waft add ${id}${version === undefined ? "" : `@${version}`}${registry}`;
}

function pluginSection(d: Definition, several: boolean): Markup {
  const heading = several
    ? markup`
      <h2>${d.name} <code>${d.id}</code></h2>
      <p>${d.description}</p>
    `
    : markup``;
  return markup`${heading}
<h2>Authorities</h2>
${
    d.authorities.length === 0
      ? markup`<p>None: the plugin computes, and reaches no file, network, clock or foreign memory.</p>`
      : markup`
        <div class="wide" tabindex="0" role="region" aria-label="Authorities of ${d.id}">
          <table class="stack">
            <thead>
              <tr>
                <th scope="col">Authority</th>
                <th scope="col">Allows to</th>
                <th scope="col">Scope</th>
                <th scope="col">Needed</th>
                <th scope="col">The authors' reason</th>
              </tr>
            </thead>
            <tbody>${
        d.authorities.map((a) =>
          markup`
                <tr>
                  <th scope="row"><code>${a.name}</code></th>
                  <td data-label="Allows to">${findAuthority(a.name)?.meaning ?? ""}</td>
                  <td data-label="Scope">${scopeText(a.scope)}</td>
                  <td data-label="Needed">${a.mode}</td>
                  <td data-label="Reason">${a.reason}</td>
                </tr>
              `
        )
      }</tbody>
          </table>
        </div>
      `
  }
${worldSection(d)}
${contracts("Provides", d.provides)}
${contracts("Uses", d.consumes)}
${
    Object.keys(d.requires).length > 0 &&
    markup`
      <h2>Requires</h2>
      <ul>${
      Object.entries(d.requires).map(([id, range]) =>
        markup`<li><a href="/plugins/${segmentOfId(id)}"><code>${id}</code></a> ${range}</li>`
      )
    }</ul>
    `
  }`;
}

/** The world of a component. */
function worldSection(d: Definition): Markup | false {
  const rows = worldRows(d);
  if (rows.length === 0) return false;
  return markup`
    <h2>World</h2>
    <p>The plugin is a component. These are all its imports and exports.</p>
    <div class="wide" tabindex="0" role="region" aria-label="World of ${d.id}">
      <table class="stack">
        <thead>
          <tr>
            <th scope="col">Import or export</th>
            <th scope="col">Authority or contract</th>
          </tr>
        </thead>
        <tbody>${
    rows.map(({ wit, note }) =>
      markup`
            <tr>
              <th scope="row"><code>${wit}</code></th>
              <td data-label="Authority or contract">${note}</td>
            </tr>
          `
    )
  }</tbody>
      </table>
    </div>
  `;
}

function contracts(title: string, list: Definition["provides"] | Definition["consumes"]): Markup | false {
  if (list.length === 0) return false;
  return markup`<h2>${title}</h2>${
    list.map((c) => {
      const namespace = contractNamespace(c);
      return markup`
        <p><a href="/contracts/${segmentOfId(c.id)}@${c.major}"><code>${namespace}</code></a>${
        "mode" in c &&
        ` (${c.mode})`
      }</p>
        <ul class="signatures">${
        c.functions.map((f) =>
          markup`<li><code>${f.name}: (${f.params.join(", ")}) → (${f.results.join(", ")})</code></li>`
        )
      }</ul>
      `;
    })
  }`;
}

/** A scope as text. */
export function scopeText(scope: Definition["authorities"][number]["scope"]): string {
  if (scope === undefined) return "";
  return Object.values(scope).map((v) => Array.isArray(v) ? v.join(", ") : String(v)).join("; ");
}

function versionTable(id: string, versions: readonly VersionLine[], shown: string): Markup {
  const segment = segmentOfId(id);
  return markup`
    <div class="wide" tabindex="0" role="region" aria-label="Versions">
      <table>
        <thead>
          <tr>
            <th scope="col">Version</th>
            <th scope="col">Published</th>
            <th scope="col">State</th>
            <th scope="col">Changes</th>
          </tr>
        </thead>
        <tbody>${
    versions.slice(0, 100).map((v, i) => {
      const before = versions[i + 1];
      return markup`
            <tr>
              <td><a href="/plugins/${segment}/v/${v.version}" ${
        v.version === shown && markup`aria-current="true"`
      }>${v.version}</a></td>
              <td>${v.publishedAt.slice(0, 10)}</td>
              <td>${
        v.yanked === undefined
          ? ""
          : markup`<span class="badge warn">yanked: ${v.yanked.severity}</span> ${v.yanked.reason}`
      }${v.publisherChanged && markup` <span class="badge warn">published by another account than before</span>`}</td>
              <td>${
        before !== undefined &&
        markup`<a href="/plugins/${segment}/compare/${before.version}...${v.version}">compare with ${before.version}</a>`
      }</td>
            </tr>
          `;
    })
  }</tbody>
      </table>
    </div>
  `;
}

function facts(id: string, release: ReleaseState, installs: { total: number; week: number }): Markup {
  const { metadata } = release;
  const outside = (url: string): Markup =>
    markup`<a rel="nofollow noopener ugc" href="${url}">${url.replace(/^https:\/\//, "")}</a>`;
  const isWeb = metadata.homepage !== undefined && /^https?:\/\//i.test(metadata.homepage);
  return markup`<dl class="facts">
<dt>Installs</dt><dd>${installs.total} in total, ${installs.week} in the last week</dd>
<dt>Published</dt><dd>${release.publishedAt.slice(0, 10)} by ${release.publisher} (${
    release.verified ? "verified by DNS" : "assigned by the registry"
  })</dd>
<dt>License</dt><dd>${metadata.license}</dd>
<dt>Repository (according to the authors)</dt><dd>${outside(metadata.repository)}</dd>
${
    isWeb && markup`
      <dt>Home page</dt>
      <dd>${outside(metadata.homepage!)}</dd>
    `
  }
<dt>Authors</dt><dd>${metadata.authors.map((a) => a.name).join(", ")}</dd>
${
    metadata.category !== undefined && markup`
      <dt>Category</dt>
      <dd><a href="/plugins?category=${encodeURIComponent(metadata.category)}">${metadata.category}</a></dd>
    `
  }
${
    (metadata.tags ?? []).length > 0 &&
    markup`
      <dt>Tags</dt>
      <dd>${
      metadata.tags!.map((t) =>
        markup`
          <a class="badge" href="/plugins?tag=${encodeURIComponent(t)}">${t}</a>
        `
      )
    }</dd>
    `
  }
<dt>Archive</dt><dd><a href="/api/blobs/sha256/${
    release.artifact.digest.slice(7)
  }">${release.artifact.size} bytes</a>, <code>${release.artifact.digest.slice(0, 19)}…</code></dd>
<dt>Files</dt><dd>${release.files.length}</dd>
<dt>Signed record</dt><dd><a href="/api/packages/${
    encodeURIComponent(id)
  }/versions/${release.version}">key ${release.signature.keyId}</a></dd></dl>`;
}
