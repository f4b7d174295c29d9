/**
 * Artifacts with right checksums and wrong tables: more rows than the code can have, and functions outside of the code.
 */
import { equal, ok, throws } from "node:assert/strict";
import { NewEngine } from "../mod.ts";
import { ArtifactError, readArtifact, requirePlaces, writeArtifact } from "./format.ts";

const ROWS = 100_000_000;

const parts = readArtifact(NewEngine().compile("(module (func) (func))").serialize());

Deno.test("a short artifact cannot declare a table that fills the memory", () => {
  for (const name of ["functionStart", "callReturn", "entryThunk"] as const) {
    const artifact = writeArtifact({ ...parts, tables: { ...parts.tables, [name]: new Int32Array(ROWS) } });
    ok(artifact.length < 100_000);
    throws(() => readArtifact(artifact).tables[name], (error: Error) => {
      ok(error instanceof ArtifactError);
      equal(error.message, `The artifact is damaged: table ${name}: too many table rows`);
      return true;
    });
  }
});

Deno.test("tables that name code outside of the image are refused", () => {
  const { tables, code } = parts;
  requirePlaces(tables, code.length, 2);
  const rows = [
    { functionEnd: tables.functionEnd.slice(1) },
    { functionEnd: Int32Array.of(tables.functionEnd[0], code.length + 1) },
    { functionEnd: tables.functionStart },
    { functionStart: Int32Array.of(-2, tables.functionStart[1]) },
  ];
  for (const row of rows) throws(() => requirePlaces({ ...tables, ...row }, code.length, 2), ArtifactError);
});
