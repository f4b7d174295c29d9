/**
 * The hint for programs without directories: components in each version of WASI, and failures that get none.
 */
import assert from "node:assert/strict";
import { FileFailure, GuestExit } from "../../base/failure.ts";
import { FileSearch } from "./file_hint.ts";

Deno.test("the search of a component for its directories is noticed, and its results stay", () => {
  for (const version of ["0.2.3", "0.3.0"]) {
    const search = new FileSearch();
    const other = () => {};
    const name = `wasi:filesystem/preopens@${version}`;
    const watched = search.watchInterfaces({
      [name]: { getDirectories: () => ["x"], other },
      "wasi:io/poll": { other },
    });
    const failure = new FileFailure("f", new Error("e"));
    search.explain(failure);
    assert.equal(failure.hint, undefined);
    const { getDirectories } = watched[name] as { getDirectories: () => unknown };
    assert.deepEqual(getDirectories(), ["x"]);
    assert.equal((watched[name] as { other: unknown }).other, other);
    search.explain(failure);
    assert.match(String(failure.hint), /--dir/);
    const [succeeded, failed] = [new GuestExit(0), new GuestExit(1)];
    for (const error of [succeeded, failed, new Error("another")]) search.explain(error);
    assert.deepEqual([succeeded.hint, failed.hint === undefined], [undefined, false]);
  }
});
