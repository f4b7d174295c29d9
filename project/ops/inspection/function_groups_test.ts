/** Groups of functions by the namespaces in their names. */
import assert from "node:assert/strict";
import { groupFunctions, namespaceOf } from "./function_groups.ts";

Deno.test("namespaces of the names that compilers give functions", () => {
  const cases: readonly (readonly [string, string | undefined])[] = [
    ["core::fmt::Formatter::pad::h0123456789abcdef", "core"],
    ["<alloc::string::String as core::fmt::Write>::write_str", "alloc"],
    ["<&mut core::fmt::X as T>::f", "core"],
    ["std::vector<int>::push_back(int const&)", "std"],
    ["~lib/rt/itcms/__new", "~lib/rt"],
    ["~lib/string/String#concat", "~lib/string"],
    ["assembly/index/main", "assembly/index"],
    ["runtime.mallocgc", "runtime"],
    ["encoding/json.(*Decoder).Decode", "encoding/json"],
    ["main", undefined],
    ["sqlite3_exec", undefined],
    ["_ZN4core3fmt", undefined],
    ["", undefined],
  ];
  for (const [name, wanted] of cases) assert.equal(namespaceOf(name), wanted, name);
});

Deno.test("groups have all functions once, the largest group first", () => {
  const functions = [["a::x", 9], ["main", 8], ["b::y", 7], ["a::z", 3], [undefined, 1]].map((
    [name, bytes],
    index,
  ) => ({
    index,
    ...(name === undefined ? {} : { name: name as string }),
    bytes: bytes as number,
  }));
  const groups = groupFunctions(functions);
  assert.deepEqual(groups.map(({ name, bytes }) => [name, bytes]), [["a", 12], [undefined, 9], ["b", 7]]);
  assert.deepEqual(groups.flatMap(({ functions }) => functions.map(({ index }) => index)).sort(), [0, 1, 2, 3, 4]);
});
