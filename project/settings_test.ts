/**
 * Settings: defaults, manifest, flags, in that order; aliases are one switch; wrong flags are usage errors.
 */
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { ProjectError } from "./base/diagnostic.ts";
import { changedSwitches, engineSettings, nearestSettings, type ResolvedSwitch, resolveSettings } from "./settings.ts";
import { ALL_FEATURE_ROWS } from "@waft/engine/internal/features";
import { OPTIMIZATION_ROWS } from "@waft/engine/internal/optimizations";
import { FEATURES, OPTIMIZATIONS } from "./manifest/setting_names.ts";
import { IMPLEMENTED } from "./implemented_keys.ts";
import { TempProject } from "../tests/project/temp_project.ts";

const find = (list: readonly ResolvedSwitch[], name: string): ResolvedSwitch => list.find((s) => s.name === name)!;

Deno.test("settings: flags over the manifest over the defaults", () => {
  const nearest = {
    file: "waft.json",
    settings: {
      features: { simd: false, gc: false },
      optimizations: { inline: false },
      runtime: { parallel: "3", deferredBoundsChecking: false },
    },
  };
  const s = resolveSettings(nearest, { features: ["gc=on"], optimizations: ["reg-merge=off"], parallel: "auto" });
  assert.deepEqual(changedSwitches(s.features), { gc: true, simd: false });
  assert.deepEqual(changedSwitches(s.optimizations), { inline: false, "reg-merge": false });
  assert.deepEqual([find(s.features, "gc").from, find(s.features, "simd").from, find(s.features, "threads").from], [
    "flag",
    "manifest",
    "default",
  ]);
  assert.deepEqual([s.parallel, s.deferredBoundsChecking], [{ value: "auto", from: "flag" }, {
    value: false,
    from: "manifest",
  }]);
  assert.deepEqual(resolveSettings({}).parallel, { value: "auto", from: "default" });
  assert.equal(resolveSettings({ settings: { runtime: { parallel: "00012" } } }).parallel.value, 12);
});

Deno.test("settings: one switch under two names", () => {
  const s = resolveSettings({ settings: { features: { "extended-constant-expressions": false } } });
  assert.deepEqual([
    find(s.features, "extended-const-expressions").value,
    find(s.features, "extended-constant-expressions").value,
  ], [false, false]);
  const flag = resolveSettings({}, { features: ["extended-const-expressions=off"] });
  assert.equal(find(flag.features, "extended-constant-expressions").value, false);
  assert.throws(
    () => resolveSettings({}, { features: ["extended-const-expressions=off", "extended-constant-expressions=on"] }),
    ProjectError,
  );
});

Deno.test("settings: the engine gets each switch under the name it knows", () => {
  for (const name of ["extended-const-expressions", "extended-constant-expressions"]) {
    assert.deepEqual(engineSettings(resolveSettings({ settings: { features: { [name]: false } } })), {
      features: { "extended-const-expressions": false },
      optimizations: {},
      bounds: "guard",
      parallel: "auto",
    });
  }
  assert.equal(
    engineSettings(resolveSettings({ settings: { runtime: { deferredBoundsChecking: false } } })).bounds,
    "explicit",
  );
});

Deno.test("settings: wrong flags", () => {
  for (const features of [["simd"], ["simd=1"], ["=on"], ["sidm=on"], ["simd=on", "simd=off"], ["toString=on"]]) {
    assert.throws(
      () => resolveSettings({}, { features }),
      (e) => e instanceof ProjectError && e.exitCode === 2,
      features.join(),
    );
  }
  assert.throws(() => resolveSettings({}, { parallel: "-1" }), ProjectError);
  assert.deepEqual(resolveSettings({}, { parallel: "4" }).diagnostics, []);
});

Deno.test("settings: a key that the build does not implement is reported when it is set", () => {
  const implemented = { features: new Set(["multi-value"]) };
  assert.deepEqual(resolveSettings({}, {}, implemented).diagnostics, []);
  const s = resolveSettings(
    { file: "waft.json", settings: { features: { simd: true, "multi-value": false } } },
    {},
    implemented,
  );
  assert.deepEqual(s.diagnostics.map((d) => [d.code, d.severity, d.file]), [[
    "settings.not-implemented",
    "warning",
    "waft.json",
  ]]);
});

Deno.test("settings: inherent optimizations stay on, with a note", () => {
  const implemented = { optimizations: new Set(["reg-abi", "inline"]), always: new Set(["reg-abi"]) };
  const off = { settings: { optimizations: { "reg-abi": false, inline: false } } };
  const s = resolveSettings({ file: "waft.json", ...off }, {}, implemented);
  assert.deepEqual(changedSwitches(s.optimizations), { inline: false, "reg-abi": true });
  assert.deepEqual(s.diagnostics.map((d) => [d.code, d.severity, d.file]), [[
    "settings.always-on",
    "warning",
    "waft.json",
  ]]);
  assert.deepEqual(resolveSettings({}, { optimizations: ["reg-abi=on"] }, implemented).diagnostics, []);
});

Deno.test("settings: the nearest manifest counts, an invalid one stops", async () => {
  const project = new TempProject('{ "settings": { "features": { "simd": false } } }');
  const deep = join(project.root, "a", "b");
  mkdirSync(deep, { recursive: true });
  assert.deepEqual((await nearestSettings(deep)).file, join(project.root, "waft.json"));
  assert.deepEqual(JSON.parse(JSON.stringify((await nearestSettings(deep)).settings)), { features: { simd: false } });
  project.write("waft.json", '{ "settings": { "features": { "simd": "off" } } }');
  await assert.rejects(nearestSettings(deep), ProjectError);
  project.remove();
});

/** The keys that `waft.json` may have, as the specification lists them. */
const SPECIFIED_FEATURES = `
  bulk-memory-operations exception-handling extended-const-expressions extended-constant-expressions gc memory64
  multi-memory multi-value mutable-global nontrapping-float-to-int-conversion reference-types sign-extension-ops
  simd table64 tail-call threads typed-function-references
`.trim().split(/\s+/);
const SPECIFIED_OPTIMIZATIONS = `
  affine-lea assoc-tree bmi2-rorx bounds-facts branch-fold call-next-use commute-self-update compact-i32-frame
  deep-fp-pins entry-arg-pins ext-fp-pins frame-elide frame-elide-reghomed immutable-poly-fastpath immutable-table
  immutable-table-type inline inline-callfree inline-loop-callees leaf-scratch-pins legacy-fp-pins legacy-gp-pins
  loop-precheck loop-region-pins multi-bounds-cert olddest-rhs-sink reg-abi reg-merge small-frame st-flags
  stack-fence stack-reg store-forward store-load-fwd store8-flags tee-sink tee-spill-elide three-op-sink tree-order
  unary-sink uxtw-add v128-const-cache v128-pins v128-sink vex-float-mem x8-pin
`.trim().split(/\s+/);

Deno.test("settings: the manifest's keys are exactly the specification's", () => {
  assert.deepEqual(FEATURES.map(({ name }) => name).sort(), SPECIFIED_FEATURES.sort());
  assert.deepEqual(OPTIMIZATIONS.map(({ name }) => name).sort(), SPECIFIED_OPTIMIZATIONS.sort());
});

Deno.test("settings: flags switch every key of the engine, in a project and without one", async () => {
  const off = { features: ["wide-arithmetic=on"], optimizations: ["simplify=off"] };
  const resolved = engineSettings(resolveSettings({}, off, IMPLEMENTED));
  assert.deepEqual(resolved.features, { "wide-arithmetic": true });
  assert.deepEqual(resolved.optimizations, { "simplify": false });
  const { features, optimizations } = resolveSettings({}, {}, IMPLEMENTED);
  assert.deepEqual(features.flatMap((row) => row.implemented ? [] : [row.name]), []);
  for (const { name } of ALL_FEATURE_ROWS) assert.ok(features.some((row) => row.name === name), name);
  for (const { name } of OPTIMIZATION_ROWS) assert.ok(optimizations.some((row) => row.name === name), name);
  assert.deepEqual(engineSettings(resolveSettings({}, {}, IMPLEMENTED)).features, {});
  // A manifest has none of them.
  const project = new TempProject('{ "settings": { "features": { "wide-arithmetic": true } } }');
  try {
    await assert.rejects(nearestSettings(project.root), /wide-arithmetic/);
  } finally {
    project.remove();
  }
});
