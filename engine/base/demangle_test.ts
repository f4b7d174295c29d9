/**
 * Names of Rust's symbols. The rows are symbols that rustc writes for types, constants and paths of each kind, with the
 * names of other demanglers where these know them; damaged and hostile symbols stay as they are.
 */
import assert from "node:assert/strict";
import { demangle } from "./demangle.ts";

const ROWS: readonly (readonly [symbol: string, name: string])[] = [
  ["_ZN1a3arr17h788faea74b05752aE", "a::arr"],
  [
    "_ZN1a4main28_$u7b$$u7b$closure$u7d$$u7d$28_$u7b$$u7b$closure$u7d$$u7d$17hc84805aefaa9ed14E",
    "a::main::{{closure}}::{{closure}}",
  ],
  ["_ZN1a6shapes13gr$uf6$$udf$e9l$ue4$nge17h6a1b8f78d70c0b58E", "a::shapes::größe::länge"],
  [
    "_ZN4core3ptr100drop_glue$LT$alloc..collections..btree..map..BTreeMap$LT$u32$C$a..shapes..Square$LT$bool$GT$$GT$$GT$17h72ef18614f15b2f2E",
    "core::ptr::drop_glue<alloc::collections::btree::map::BTreeMap<u32,a::shapes::Square<bool>>>",
  ],
  [
    "_ZN51_$LT$$RF$$u5b$T$u5d$$u20$as$u20$a..shapes..Area$GT$4area17h4546017f726799d3E",
    "<&[T] as a::shapes::Area>::area",
  ],
  [
    "_ZN64_$LT$a..shapes..Square$LT$f64$GT$$u20$as$u20$a..shapes..Area$GT$4area17h632dab0f9de3c4a4E",
    "<a::shapes::Square<f64> as a::shapes::Area>::area",
  ],
  ["_ZN1a4main17hdfe8d832c4af554bE.llvm.12345678901234567890", "a::main"],
  ["_ZN3std6thread11main_thread4MAIN17h1111111111111111E.0", "std::thread::main_thread::MAIN.0"],
  [
    "_$LT$a..shapes..Square$LT$f64$GT$$u20$as$u20$a..shapes..Area$GT$::area::h632dab0f9de3c4a4",
    "<a::shapes::Square<f64> as a::shapes::Area>::area",
  ],
  ["_RNvCskFybzSCucbF_1a4main", "a::main"],
  ["_RNvCskFybzSCucbF_1a4main.llvm.1234ABCD", "a::main"],
  ["_RINvCskFybzSCucbF_1a3arrKj3_Kc78_Kb1_Kln5_EB2_", "a::arr::<3, 'x', true, -5>"],
  ["_RINvCskFybzSCucbF_1a3genFKClElEB2_", 'a::gen::<extern "C" fn(i32) -> i32>'],
  ["_RINvCskFybzSCucbF_1a3genFUPhEuEB2_", "a::gen::<unsafe fn(*const u8)>"],
  [
    "_RINvCskFybzSCucbF_1a3genINtNtCs8NwYtU1Mohg_4core6option6OptionFEzEEB2_",
    "a::gen::<core::option::Option<fn() -> !>>",
  ],
  [
    "_RINvCskFybzSCucbF_1a3genINtNtCs8NwYtU1Mohg_4core6option6OptionFG0_RL1_hRL0_hERL1_hEEB2_",
    "a::gen::<core::option::Option<for<'a, 'b> fn(&'a u8, &'b u8) -> &'a u8>>",
  ],
  [
    "_RINvCskFybzSCucbF_1a3genINtNtCsbEht8wFNRx7_5alloc5boxed3BoxDG_INtNtNtCs8NwYtU1Mohg_4core3ops8function2FnTRL0_eEEp6OutputjEL_EEB2_",
    "a::gen::<alloc::boxed::Box<dyn for<'a> core::ops::function::Fn<(&'a str,), Output = usize>>>",
  ],
  [
    "_RINvCskFybzSCucbF_1a3genINtNtCsbEht8wFNRx7_5alloc5boxed3BoxDNtNtCs8NwYtU1Mohg_4core3fmt5DebugNtNtB10_6marker4SendEL_EEB2_",
    "a::gen::<alloc::boxed::Box<dyn core::fmt::Debug + core::marker::Send>>",
  ],
  [
    "_RINvCskFybzSCucbF_1a3genINtNtCsbEht8wFNRx7_5alloc5boxed3BoxDNtNtNtNtCs8NwYtU1Mohg_4core4iter6traits8iterator8Iteratorp4ItemThcEEL_EEB2_",
    "a::gen::<alloc::boxed::Box<dyn core::iter::traits::iterator::Iterator<Item = (u8, char)>>>",
  ],
  ["_RINvCskFybzSCucbF_1a3genThReAtj4_EEB2_", "a::gen::<(u8, &str, [u16; 4])>"],
  ["_RINvCskFybzSCucbF_1a3genThEEB2_", "a::gen::<(u8,)>"],
  ["_RINvCskFybzSCucbF_1a3genOnEB2_", "a::gen::<*mut i128>"],
  ["_RINvCskFybzSCucbF_1a3genQSxEB2_", "a::gen::<&mut [i64]>"],
  ["_RNCNCNvCskFybzSCucbF_1a4mains0_00B5_", "a::main::{closure#2}::{closure#0}"],
  [
    "_RNSNvYNCNvCskFybzSCucbF_1a4main0INtNtNtCs8NwYtU1Mohg_4core3ops8function6FnOnceTRlEE9call_once6vtableB8_",
    "<a::main::{closure#0} as core::ops::function::FnOnce<(&i32,)>>::call_once::{shim:vtable#0}",
  ],
  ["_RNvNtNtCskFybzSCucbF_1a6shapesu9gre_6ka8iu8lnge_loa", "a::shapes::größe::länge"],
  ["_RNvXs0_NtCskFybzSCucbF_1a6shapesRSlNtB5_4Area4areaB7_", "<&[i32] as a::shapes::Area>::area"],
  ["_RNvMs_NtCskFybzSCucbF_1a6shapesINtB4_6SquaredE3getB6_", "<a::shapes::Square<f64>>::get"],
  ["_RINvCslHcVFiSui7X_1b1aKAh1_h2_h3_EEB2_", "b::a::<{[1, 2, 3]}>"],
  ["_RINvCslHcVFiSui7X_1b1eKVNtNtB2_1E1AUEB2_", "b::e::<{b::E::A}>"],
  ["_RINvCslHcVFiSui7X_1b1eKVNtNtB2_1E1BTan3_EEB2_", "b::e::<{b::E::B(-3)}>"],
  ["_RINvCslHcVFiSui7X_1b1eKVNtNtB2_1E1CS1zc71_EEB2_", "b::e::<{b::E::C { z: 'q' }}>"],
  ["_RINvCslHcVFiSui7X_1b1pKVNtB2_1PS1xh1_1yb1_EEB2_", "b::p::<{b::P { x: 1, y: true }}>"],
  ["_RINvCslHcVFiSui7X_1b1rKRAh1_h2_EEB2_", "b::r::<{&[1, 2]}>"],
  ["_RINvCslHcVFiSui7X_1b1sKRe68c3a92279_EB2_", 'b::s::<"hé\\"y">'],
  ["_RINvCslHcVFiSui7X_1b1tKTh1_b1_EEB2_", "b::t::<{(1, true)}>"],
  [
    "_RINvCslHcVFiSui7X_1b3bigKoffffffffffffffffffffffffffffffff_EB2_",
    "b::big::<340282366920938463463374607431768211455>",
  ],
];

Deno.test("symbols of both manglings become paths", () => {
  for (const [symbol, name] of ROWS) assert.equal(demangle(symbol), name);
});

Deno.test("names that are not symbols of Rust stay", () => {
  const names = [
    "main",
    "a::h0123",
    "_ZN3foo3barEv",
    "_ZN3foo3bar17h788faea74b05752E",
    "_R",
    "_RN",
    "_R1NvC1a1b",
    "_RNvC1a1b!",
    "runtime.main",
    "~lib/rt/itcms/__new",
    "",
  ];
  for (const name of names) assert.equal(demangle(name), name);
});

Deno.test("damaged symbols give a name or stay, and do not throw", () => {
  for (const [symbol] of ROWS) {
    for (let k = 0; k <= symbol.length; k++) {
      for (const damaged of [symbol.slice(0, k), `${symbol.slice(0, k)}B${symbol.slice(k)}`]) {
        assert.equal(typeof demangle(damaged), "string");
      }
    }
  }
});

Deno.test("symbols whose names would be huge stay", () => {
  /** The name of a tuple of `count` elements, each of which refers to the tuple before. */
  const doubled = (depth: number) => {
    let text = "INvC1a1b";
    let last = "h";
    for (let k = 0; k < depth; k++) {
      const at = text.length;
      text += `T${last}${last}E`;
      last = `B${base62(at)}`;
    }
    return `_R${text}E`;
  };
  assert.equal(
    demangle(doubled(3)),
    "a::b::<(u8, u8), ((u8, u8), (u8, u8)), (((u8, u8), (u8, u8)), ((u8, u8), (u8, u8)))>",
  );
  const hostile = [
    doubled(40),
    `_RINvC1a1b${"S".repeat(3000)}hE`,
    `_R${"Y".repeat(3000)}`,
    "_RINvC1a1bB7_E",
    "_RINvC1a1bFGzzzzz_EuE",
    `_RINvC1a1bKj${"f".repeat(5000)}_E`,
    "_RNvC1au5_99999",
  ];
  for (const symbol of hostile) assert.equal(demangle(symbol), symbol);
});

function base62(value: number): string {
  const digits = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  if (value === 0) return "_";
  let text = "_";
  for (let rest = value - 1, first = true; rest > 0 || first; rest = Math.floor(rest / 62), first = false) {
    text = `${digits[rest % 62]}${text}`;
  }
  return text;
}
