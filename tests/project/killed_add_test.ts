/**
 * `add` killed at every write, rename and removal, before, in the middle and after: the project is then in the old
 * state, in the new one, or in one that `status` explains; and `add` run again brings it to the new one.
 */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { addPlugins } from "../../project/ops/project/add.ts";
import { projectStatus } from "../../project/ops/project/status.ts";
import { DISK } from "../../project/base/files.ts";
import { withWriteLock, WRITE_LOCK_FILE } from "../../project/base/atomic_write.ts";
import { ProjectError } from "../../project/base/diagnostic.ts";
import { DyingFiles, Killed, type Moment } from "./dying_files.ts";
import { FakeRegistry } from "./fake_registry.ts";
import { CODEC, codecDefinition, KV, kvDefinition } from "./sample_plugins.ts";
import { ALLOW_ALL, REGISTRY, TempProject } from "./temp_project.ts";

/** A pid that no process has: above the system's maximum. */
const NO_PID = 2 ** 31 - 2;

/** After a real kill the writer is gone; here it is this process, so its mark gets another pid. */
function bury(project: TempProject): void {
  const mark = project.read(WRITE_LOCK_FILE);
  if (mark?.trim() === String(process.pid)) project.write(WRITE_LOCK_FILE, `${NO_PID}\n`);
}

Deno.test("add killed anywhere leaves a state that status explains and add repairs", async () => {
  const fake = new FakeRegistry();
  await fake.publish([codecDefinition()]);
  await fake.publish([kvDefinition()]);
  const wanted = new TempProject();
  const run = async (project: TempProject, files?: DyingFiles): Promise<void> => {
    const context = await project.context(fake, files === undefined ? {} : { files });
    await addPlugins(context, { root: project.root, directory: project.root, specs: [KV], decider: ALLOW_ALL });
  };
  await run(wanted);
  const [newManifest, newLock] = [wanted.read("waft.json"), wanted.read("waft-lock.json")];
  const oldManifest = '{\n  "plugins": {}\n}\n';
  const seen = new Set<string>();
  let steps = 0;
  for (let count = 1;; count++) {
    let finished = false;
    for (const moment of ["before", "half", "after"] as Moment[]) {
      const project = new TempProject(oldManifest);
      const files = new DyingFiles(count, moment);
      try {
        await run(project, files);
        finished = true;
      } catch (error) {
        assert.ok(error instanceof Killed, String(error));
        steps = count;
      }
      bury(project);
      const [manifest, lock] = [project.read("waft.json"), project.read("waft-lock.json")];
      assert.ok(manifest === oldManifest || manifest === newManifest, `half a manifest at step ${count} ${moment}`);
      assert.ok(lock === undefined || lock === newLock, `half a lockfile at step ${count} ${moment}`);
      const status = await projectStatus(project.root, {
        files: DISK,
        paths: (await project.context(fake)).paths,
        env: {},
        registry: REGISTRY,
        root: project.root,
      });
      const state = `${manifest === newManifest ? "new" : "old"} ${lock === undefined ? "none" : "new"}: ${
        status.lockfile!.state
      }`;
      seen.add(state);
      const extra = readdirSync(project.root).filter((n) => n !== "waft.json" && n !== "waft-lock.json");
      assert.equal(status.diagnostics.filter((d) => d.code === "project.leftover").length, extra.length, extra.join());
      // Repair: the same command, or `add` alone if the manifest already has the requirement.
      await run(project);
      assert.deepEqual([project.read("waft.json"), project.read("waft-lock.json")], [newManifest, newLock]);
      assert.deepEqual(
        readdirSync(project.root).sort(),
        ["waft-lock.json", "waft.json"],
        `left over at step ${count} ${moment}`,
      );
      project.remove();
    }
    if (finished) break;
  }
  wanted.remove();
  assert.ok(steps >= 12, `only ${steps} steps`);
  assert.deepEqual([...seen].sort(), ["new new: up to date", "new none: missing", "old none: none"]);
});

Deno.test("an update killed between the two renames is stale, says so, and add alone repairs it", async () => {
  const fake = new FakeRegistry();
  await fake.publish([codecDefinition("2.0.0")]);
  const project = new TempProject();
  const spec = (specs: string[]) => ({ root: project.root, directory: project.root, specs, decider: ALLOW_ALL });
  await addPlugins(await project.context(fake), spec([CODEC]));
  await fake.publish([codecDefinition("2.1.0")]);
  const states = new Set<string>();
  const before = [project.read("waft.json")!, project.read("waft-lock.json")!] as const;
  for (let count = 1; count < 40; count++) {
    project.write("waft.json", before[0]);
    project.write("waft-lock.json", before[1]);
    try {
      await addPlugins(
        await project.context(fake, { files: new DyingFiles(count, "after") }),
        spec([`${CODEC}@^2.1.0`]),
      );
    } catch (error) {
      assert.ok(error instanceof Killed, String(error));
    }
    bury(project);
    const paths = (await project.context(fake)).paths;
    const status = await projectStatus(project.root, {
      files: DISK,
      paths,
      env: {},
      registry: REGISTRY,
      root: project.root,
    });
    states.add(status.lockfile!.state);
    if (status.lockfile!.state === "stale") {
      assert.match(
        status.diagnostics.map((d) => d.message).join(),
        /waft\.json has "\^2\.1\.0", the lockfile has "\^2\.0\.0"/,
      );
      await addPlugins(await project.context(fake), spec([]));
      const repaired = await projectStatus(project.root, {
        files: DISK,
        paths,
        env: {},
        registry: REGISTRY,
        root: project.root,
      });
      assert.equal(repaired.lockfile!.state, "up to date");
    }
  }
  assert.deepEqual([...states].sort(), ["stale", "up to date"]);
  project.remove();
});

Deno.test("two writers: the second waits for the first, and says who holds the project when it takes too long", async () => {
  const project = new TempProject();
  const order: string[] = [];
  const entered = Promise.withResolvers<void>();
  const first = withWriteLock(project.root, async () => {
    order.push("first in");
    entered.resolve();
    await new Promise((resolve) => setTimeout(resolve, 120));
    order.push("first out");
  });
  await entered.promise;
  await withWriteLock(project.root, () => Promise.resolve(order.push("second")));
  await first;
  assert.deepEqual(order, ["first in", "first out", "second"]);
  project.write(WRITE_LOCK_FILE, `${process.pid}\n`);
  await assert.rejects(
    withWriteLock(project.root, () => Promise.resolve(), { waitMs: 100 }),
    (error) => error instanceof ProjectError && error.diagnostics[0].code === "project.busy",
  );
  project.write(WRITE_LOCK_FILE, `${NO_PID}\n`);
  await withWriteLock(project.root, () => Promise.resolve());
  // A mark that was cut off may start with the number of a process that lives.
  project.write(WRITE_LOCK_FILE, `${process.pid}`);
  await withWriteLock(project.root, () => Promise.resolve());
  assert.deepEqual(readdirSync(join(project.root)), ["waft.json"]);
  project.remove();
});

Deno.test("a manifest that changes while add runs is not overwritten", async () => {
  const fake = new FakeRegistry();
  await fake.publish([codecDefinition()]);
  const project = new TempProject();
  const edited = '{\n  "plugins": {},\n  "settings": {}\n}\n';
  fake.tamper = (path, response) => {
    if (path.includes("/blobs/")) project.write("waft.json", edited);
    return response;
  };
  const work = addPlugins(await project.context(fake), {
    root: project.root,
    directory: project.root,
    specs: [CODEC],
    decider: ALLOW_ALL,
  });
  await assert.rejects(work, /project\.changed/);
  assert.equal(project.read("waft.json"), edited);
  assert.deepEqual(readdirSync(project.root), ["waft.json"]);
  project.remove();
});
