// Traits, closures, collections, reference counts, overflow checks, text: prints the same compiled for this machine and
// for WASI.
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::rc::{Rc, Weak};

trait Shape {
    fn area(&self) -> f64;
}

struct Circle(f64);
struct Square(f64);

impl Shape for Circle {
    fn area(&self) -> f64 {
        std::f64::consts::PI * self.0 * self.0
    }
}

impl Shape for Square {
    fn area(&self) -> f64 {
        self.0 * self.0
    }
}

#[derive(Debug)]
enum Refused {
    Empty,
    Odd(char),
}

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Refused::Empty => write!(out, "empty"),
            Refused::Odd(c) => write!(out, "odd {:?}", c),
        }
    }
}

impl std::error::Error for Refused {}

fn number(text: &str) -> Result<u64, Box<dyn std::error::Error>> {
    if text.is_empty() {
        return Err(Box::new(Refused::Empty));
    }
    if let Some(c) = text.chars().find(|c| c.is_alphabetic()) {
        return Err(Box::new(Refused::Odd(c)));
    }
    Ok(text.parse::<u64>()?)
}

struct Node {
    value: u32,
    parent: RefCell<Weak<Node>>,
    children: RefCell<Vec<Rc<Node>>>,
}

fn grow(depth: u32) -> Rc<Node> {
    let node = Rc::new(Node { value: depth, parent: RefCell::new(Weak::new()), children: RefCell::new(vec![]) });
    for _ in 0..if depth == 0 { 0 } else { 3 } {
        let child = grow(depth - 1);
        *child.parent.borrow_mut() = Rc::downgrade(&node);
        node.children.borrow_mut().push(child);
    }
    node
}

fn sum(node: &Rc<Node>) -> u32 {
    let up = node.parent.borrow().upgrade().map_or(0, |parent| parent.value);
    node.value + up + node.children.borrow().iter().map(sum).sum::<u32>()
}

fn main() {
    let shapes: Vec<Box<dyn Shape>> =
        (0..100)
            .map(|i| if i % 2 == 0 { Box::new(Circle(i as f64)) as Box<dyn Shape> } else { Box::new(Square(i as f64)) })
            .collect();
    println!("{:.6}", shapes.iter().map(|shape| shape.area()).sum::<f64>());
    let mut counts: HashMap<String, i64> = HashMap::new();
    for i in 0..5000 {
        *counts.entry(format!("k{}", i % 37)).or_insert(0) += i;
    }
    let sorted: BTreeMap<_, _> = counts.iter().collect();
    println!("{:?}", sorted.iter().take(5).collect::<Vec<_>>());
    println!("{}", sum(&grow(7)));
    for text in ["12", "", "1x", "99999999999999999999", "-1"] {
        match number(text) {
            Ok(value) => println!("{}", value),
            Err(error) => println!("{:?}: {}", text, error),
        }
    }
    println!("{:?} {:?} {}", 250u8.checked_add(10), i32::MIN.checked_abs(), 250u8.wrapping_add(10));
    println!("{} {:e} {:?} {}", 0.1 + 0.2, 1e300, f32::MAX, "grüße".to_uppercase());
    println!("{}", u128::MAX / 7 % 1_000_000_007);
    std::process::exit(3);
}
