/**
 * The files of deploy/: what the manifests say about `waft serve` is true, their parts fit together, and the chart
 * renders the same objects. In: YAML; `helm`, if it is there.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseAllDocuments } from "yaml";
import { readServeConfig } from "../../project/ops/run/serve_config.ts";
import { waft } from "../cli_project/waft.ts";

const DEPLOY = fileURLToPath(new URL("../../deploy/", import.meta.url));
const CHART = join(DEPLOY, "helm/waft");

// deno-lint-ignore no-explicit-any
type Yaml = any;

/** The objects of a file by kind. */
function objectsOf(text: string): Record<string, Yaml> {
  const documents = parseAllDocuments(text, { uniqueKeys: true });
  const objects: Yaml[] = [];
  for (const document of documents as Exclude<typeof documents, { empty: true }>) {
    assert.deepEqual(document.errors, []);
    const object: unknown = document.toJS();
    if (object !== null) objects.push(object);
  }
  return Object.fromEntries(objects.map((object) => [object.kind, object]));
}

const VERSIONS: Readonly<Record<string, string>> = {
  ConfigMap: "v1",
  Deployment: "apps/v1",
  Service: "v1",
  HorizontalPodAutoscaler: "autoscaling/v2",
  PodDisruptionBudget: "policy/v1",
};

/** Seconds of a time such as `30s`. */
const seconds = (time: string) => Number(time.replace(/s$/, ""));

/** Checks the objects of one application. */
function checkObjects(objects: Record<string, Yaml>, help: string): void {
  const kinds = Object.keys(objects);
  for (const [kind, object] of Object.entries(objects)) assert.equal(object.apiVersion, VERSIONS[kind], kind);
  const { Deployment: { spec, metadata }, Service: service, ConfigMap: config, PodDisruptionBudget: budget } = objects;
  const { spec: pod, metadata: { labels } } = spec.template;
  for (const selector of [spec.selector.matchLabels, service.spec.selector, budget.spec.selector.matchLabels]) {
    for (const [name, value] of Object.entries(selector)) assert.equal(labels[name], value, name);
  }
  assert.deepEqual(kinds.map((kind) => objects[kind].metadata.name).filter((name) => name !== metadata.name), []);
  const [container] = pod.containers;
  // The options exist, and the configuration is valid.
  const [command, ...options] = container.args as string[];
  assert.equal(command, "serve");
  for (const option of options) assert.ok(help.includes(` ${option.split("=")[0]} `), option);
  const value = (name: string) => options.find((option) => option.startsWith(`${name}=`))?.split("=")[1] ?? "";
  const folder = mkdtempSync(join(tmpdir(), "waft-deploy-"));
  try {
    const [[name, text]] = Object.entries(config.data as Record<string, string>);
    writeFileSync(join(folder, name), text);
    assert.equal(readServeConfig(join(folder, name)).routes.length, 1);
    assert.equal(value("--config"), `/etc/waft/${name}`);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  // Ports and probes.
  const ports = Object.fromEntries((container.ports as Yaml[]).map((port) => [port.name, port.containerPort]));
  assert.equal(value("--addr"), `0.0.0.0:${ports.http}`);
  assert.equal(value("--admin"), `0.0.0.0:${ports.admin}`);
  assert.equal(service.spec.ports[0].targetPort, "http");
  assert.equal(spec.template.metadata.annotations["prometheus.io/port"], String(ports.admin));
  for (
    const [probe, path] of [["startupProbe", "/readyz"], ["readinessProbe", "/readyz"], ["livenessProbe", "/healthz"]]
  ) {
    assert.deepEqual(container[probe].httpGet, { path, port: "admin" });
  }
  // The pod waits, stops gracefully, and is killed only after that.
  const wait = container.lifecycle.preStop.sleep.seconds;
  assert.ok(wait > 0 && pod.terminationGracePeriodSeconds > wait + seconds(value("--graceful-timeout")));
  // Confinement.
  assert.equal(pod.securityContext.runAsNonRoot, true);
  assert.equal(pod.securityContext.seccompProfile.type, "RuntimeDefault");
  assert.deepEqual(container.securityContext, {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ["ALL"] },
  });
  assert.equal(pod.automountServiceAccountToken, false);
  assert.ok(container.resources.requests.cpu !== undefined && container.resources.limits.memory !== undefined);
  const volumes = (pod.volumes as Yaml[]).map(({ name }) => name);
  for (const { name } of container.volumeMounts as Yaml[]) assert.ok(volumes.includes(name), name);
  const cache = (container.volumeMounts as Yaml[]).find(({ name }) => name === "cache");
  assert.match(readFileSync(join(DEPLOY, "Dockerfile"), "utf8"), new RegExp(`^ENV WAFT_HOME=${cache.mountPath}$`, "m"));
  // The autoscaler alone decides on the number of pods.
  const scaler = objects["HorizontalPodAutoscaler"];
  if (scaler === undefined) return assert.ok(spec.replicas >= 1);
  assert.deepEqual(scaler.spec.scaleTargetRef, { apiVersion: "apps/v1", kind: "Deployment", name: metadata.name });
  assert.equal(spec.replicas, undefined);
  assert.ok(scaler.spec.minReplicas > budget.spec.maxUnavailable);
}

async function helpOfServe(): Promise<string> {
  const home = mkdtempSync(join(tmpdir(), "waft-deploy-"));
  try {
    return (await waft(["serve", "--help"], home, home)).out.replace(/\s+/g, " ");
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

Deno.test("the manifests for Kubernetes fit together and to waft serve", async () => {
  const objects = objectsOf(readFileSync(join(DEPLOY, "kubernetes/waft.yaml"), "utf8"));
  assert.deepEqual(Object.keys(objects).sort(), Object.keys(VERSIONS).sort());
  checkObjects(objects, await helpOfServe());
});

const helm = (...args: string[]) => spawnSync("helm", args, { encoding: "utf8" });
/** The version that the chart asks for at least. */
const KUBERNETES = "1.30.0";
const HAS_HELM = helm("version").status === 0;

Deno.test({
  name: HAS_HELM ? "the chart renders such objects" : "the chart renders such objects (ignored: no helm here)",
  ignore: !HAS_HELM,
}, async () => {
  const help = await helpOfServe();
  const { status, stdout, stderr } = helm("lint", "--strict", CHART);
  assert.equal(status, 0, stdout + stderr);
  const choices = [
    [],
    ["--set", "autoscaling.enabled=false,workers=auto,replicas=3"],
    ["--set", "registrySecret=pull,autoscaling.requestsHandling=32,image.digest=sha256:0,gracefulTimeoutSeconds=90"],
    ["--set-json", 'env=[{"name":"OTEL_SERVICE_NAME","value":"a"}]', "--set", "extraArgs={--fuel=1000000}"],
  ];
  for (const choice of choices) {
    const rendered = helm("template", "shop", CHART, "--kube-version", KUBERNETES, ...choice);
    assert.equal(rendered.status, 0, rendered.stderr);
    checkObjects(objectsOf(rendered.stdout), help);
  }
  const objects = objectsOf(helm("template", "shop", CHART, "--kube-version", KUBERNETES, ...choices[2]).stdout);
  const { containers: [container] } = objects["Deployment"].spec.template.spec;
  assert.deepEqual(container.env, [{ name: "DOCKER_CONFIG", value: "/etc/registry" }]);
  assert.equal(container.image, "registry.example.com/waft@sha256:0");
  assert.equal(objects["HorizontalPodAutoscaler"].spec.metrics[1].pods.target.averageValue, "32");
});
