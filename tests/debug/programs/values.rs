// The program of the debugger's tests in Rust. Rebuild with programs/build.sh. It contains no code of a library: the
// types Vec and String have the names and members of those of the standard library since Rust 1.81.
#![no_std]
#![allow(dead_code, unused_variables)]

use core::marker::PhantomData;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

pub struct Unique<T> {
    pointer: *const T,
    _marker: PhantomData<T>,
}

pub struct RawVecInner {
    cap: usize,
    ptr: Unique<u8>,
}

pub struct RawVec<T> {
    inner: RawVecInner,
    _marker: PhantomData<T>,
}

pub struct Vec<T> {
    buf: RawVec<T>,
    len: usize,
}

pub struct String {
    vec: Vec<u8>,
}

pub enum Reply {
    Empty,
    Value(i32),
    Pair { left: i32, right: u8 },
}

static NUMBERS: [u32; 3] = [10, 20, 30];
static BYTES: [u8; 5] = *b"owned";

macro_rules! vec {
    ($data:expr, $len:expr) => {{
        let ptr = Unique { pointer: $data as *const _ as *const u8, _marker: PhantomData };
        Vec { buf: RawVec { inner: RawVecInner { cap: $len, ptr }, _marker: PhantomData }, len: $len }
    }};
}

#[inline(never)]
fn look(
    text: &str,
    owned: &String,
    list: &Vec<u32>,
    words: &[u16],
    empty: &Reply,
    value: &Reply,
    pair: &Reply,
    some: &Option<i32>,
    none: &Option<i32>,
) -> usize {
    let copy: Vec<u32> = vec!(&NUMBERS, 2);
    copy.len + list.len
}

#[no_mangle]
pub extern "C" fn run(n: i32) -> usize {
    let owned = String { vec: vec!(&BYTES, 5) };
    let list: Vec<u32> = vec!(&NUMBERS, 3);
    let words: [u16; 2] = [7, 9];
    let pair = Reply::Pair { left: n, right: 3 };
    look("slice", &owned, &list, &words, &Reply::Empty, &Reply::Value(n), &pair, &Some(n), &None)
}
