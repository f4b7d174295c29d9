//! What a program of preview 1 sees of the options: its arguments, variables and directories, a function of another
//! module, and a socket that listens. The first argument says which.

use std::env;
use std::fs;
use std::io::{Read, Write};

#[link(wasm_import_module = "other")]
extern "C" {
    fn twice(x: i32) -> i32;
}

fn listed(path: &str) -> String {
    let mut names: Vec<_> = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    format!("{names:?}")
}

/// Answers one connection with what it receives, reversed.
#[cfg(all(target_os = "wasi", target_env = "p1"))]
fn answer() {
    use std::net::TcpListener;
    use std::os::fd::FromRawFd;
    let listener = unsafe { TcpListener::from_raw_fd(3) };
    let (mut stream, _) = listener.accept().unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    bytes.reverse();
    stream.write_all(&bytes).unwrap();
}

#[cfg(not(all(target_os = "wasi", target_env = "p1")))]
fn answer() {}

fn main() {
    let args: Vec<String> = env::args().collect();
    match args[1].as_str() {
        "arguments" => println!("{args:?}"),
        "variables" => println!("{:?} {:?}", env::var("GIVEN"), env::var("INHERITED")),
        "files" => {
            fs::write("data/new.txt", "written").unwrap();
            fs::rename("data/new.txt", "data/renamed.txt").unwrap();
            println!("{} {:?}", listed("data"), fs::read_to_string("data/renamed.txt"));
            println!("{:?}", fs::read_to_string("data/../../outside").map_err(|error| error.kind()));
            fs::remove_file("data/renamed.txt").unwrap();
        }
        "preload" => println!("{}", unsafe { twice(21) }),
        "listen" => answer(),
        other => panic!("{other}"),
    }
}
