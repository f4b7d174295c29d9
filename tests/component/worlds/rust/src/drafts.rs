//! The world `drafts` in Rust: what a guest sees of its configuration and of its store.

wit_bindgen::generate!({ path: "../wit", world: "drafts", generate_all });

use wasi::config::store as config;
use wasi::keyvalue::store as keyvalue;

struct Program;

impl Guest for Program {
    fn report() -> String {
        let mut pairs = config::get_all().unwrap();
        pairs.sort();
        let pairs: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let (name, absent) = (config::get("name").unwrap(), config::get("absent").unwrap());
        let mut parts = vec![format!("{name:?}, {absent:?}, {}", pairs.join(", "))];
        let bucket = keyvalue::open("").unwrap();
        bucket.set("b", "zwölf".as_bytes()).unwrap();
        bucket.set("a", &[0, 1, 2, 3]).unwrap();
        let mut keys = bucket.list_keys(None).unwrap().keys;
        keys.sort();
        let text = String::from_utf8(bucket.get("b").unwrap().unwrap()).unwrap();
        parts.push(format!("{}, {text}, {:?}", keys.join(" "), bucket.get("a").unwrap()));
        bucket.delete("a").unwrap();
        bucket.delete("never").unwrap();
        let exist = ["a", "b"].map(|key| bucket.exists(key).unwrap());
        parts.push(format!("{exist:?}, {:?}", bucket.get("a").unwrap()));
        parts.push(match keyvalue::open("another") {
            Ok(_) => "opened".to_string(),
            Err(error) => format!("{error:?}"),
        });
        parts.join("; ")
    }
}

export!(Program);
