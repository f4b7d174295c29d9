/**
 * A contract: its functions and its providers.
 */
import { contractNamespace, type Definition } from "../../../project/definitions/definition.ts";
import { segmentOfId } from "../../names.ts";
import { Problem } from "../../problem.ts";
import { contractParam } from "../../routes/plugins.ts";
import type { Call } from "../../services.ts";
import { findRelease, listProviders } from "../../store/packages.ts";
import { layout } from "../layout.ts";
import { markup } from "../markup.ts";

/** Renders a contract. */
export async function contractPage(call: Call): Promise<string> {
  const { database } = call.services;
  const namespace = contractParam(call);
  const providers = await listProviders(database, namespace);
  if (providers.length === 0) throw new Problem("contract.unknown", `no plugin provides ${namespace}`);
  const [firstProvider] = providers;
  const release = await findRelease(database, firstProvider.package, firstProvider.version);
  const contract = release?.plugins.find((p) => p.id === firstProvider.id)?.definition.provides.find((
    c: Definition["provides"][number],
  ) => contractNamespace(c) === namespace);
  return layout(call.services, {
    title: namespace,
    description: `The contract ${namespace} and the plugins that provide it.`,
    section: "plugins",
    body: markup`
      <main id="main">
        <h1>Contract <code>${namespace}</code></h1>
        <h2>Functions</h2>
        <p>As ${firstProvider.id} ${firstProvider.version} provides them:</p>
        <ul class="signatures">${
      (contract?.functions ?? []).map((f) =>
        markup`<li><code>${f.name}: (${f.params.join(", ")}) → (${f.results.join(", ")})</code></li>`
      )
    }</ul>
        <h2>Providers</h2>
        <ul>${
      providers.map((p) =>
        markup`<li><a href="/plugins/${segmentOfId(p.package)}"><code>${p.id}</code></a> ${p.version}</li>`
      )
    }</ul>
      </main>
    `,
  });
}
