//! References and cycles of small crates.

use std::collections::BTreeSet;

use super::names::Names;
use super::{cycles, describe, source};

/// The references of a crate, as `from -> to`, by its files: path of the module and source.
fn references(files: &[(&str, &str)]) -> Vec<String> {
    let mut lines = Vec::new();
    for (from, targets) in names(files).references() {
        lines.extend(targets.iter().map(|to| format!("{from} -> {to}")));
    }
    lines
}

fn names(files: &[(&str, &str)]) -> Names {
    let mut names = Names::default();
    for (path, text) in files {
        let segments = path
            .split("::")
            .filter(|it| !it.is_empty() && *it != "root");
        let segments = segments.map(str::to_owned).collect();
        names.add(segments, path, source::read(text).unwrap());
    }
    names
}

#[test]
fn imports_and_paths_are_references() {
    let files = [
        ("root", "mod a; mod b; mod c; fn main() { a::run() }"),
        (
            "a",
            "use crate::b::{B, make as other}; use super::c; pub fn run() { other(c::C) }",
        ),
        ("b", "pub struct B; pub fn make() { let _: crate::c::C; }"),
        ("c", "pub struct C; use std::fmt;"),
    ];
    let expected = ["a -> b", "a -> c", "b -> c", "root -> a"];
    assert_eq!(references(&files), expected);
}

#[test]
fn names_are_followed_through_exports() {
    let files = [
        ("root", "mod a; mod b; pub use b::B; pub(crate) use a::*;"),
        ("a", "use crate::B; pub struct A(B);"),
        ("b", "mod inner; pub use inner::B;"),
        ("b::inner", "pub struct B; fn f(_: crate::A) {}"),
    ];
    assert_eq!(references(&files), ["a -> b::inner", "b::inner -> a"]);
}

#[test]
fn an_export_counts_where_the_file_uses_the_name() {
    let files = [
        ("root", "mod a; pub use a::A; struct Own(A);"),
        ("a", "pub struct A;"),
    ];
    assert_eq!(references(&files), ["root -> a"]);
}

#[test]
fn names_of_a_glob_import_are_references_where_they_are_written() {
    let files = [
        ("root", "mod a; mod b; pub struct R;"),
        ("a", "use super::*; fn f(_: R) {}"),
        ("b", "use super::*; fn f() {}"),
    ];
    assert_eq!(references(&files), ["a -> root"]);
}

#[test]
fn tests_comments_strings_and_declarations_do_not_count() {
    let files = [
        (
            "root",
            "mod a; mod b; #[cfg(test)] mod tests { use crate::a::A; }\n\
             /// [`crate::a::A`]\n const X: &str = \"crate::a::A\";",
        ),
        (
            "a",
            "pub struct A { #[cfg(test)] b: crate::b::B, x: u8 }\n\
             #[cfg(test)] fn f<T, U>() { crate::b::make() }\n #[cfg(test)] use crate::b;",
        ),
        ("b", "pub struct B; pub fn make() {}"),
    ];
    assert_eq!(references(&files), Vec::<String>::new());
}

#[test]
fn macros_and_modules_in_braces_belong_to_their_file() {
    let files = [
        ("root", "mod a; mod b;"),
        (
            "a",
            "macro_rules! list { () => { $crate::b::B } } mod inner { pub struct I; }",
        ),
        (
            "b",
            "pub struct B; fn f(_: super::a::inner::I) { crate::list!() }",
        ),
    ];
    assert_eq!(references(&files), ["a -> b", "b -> a"]);
}

#[test]
fn fields_methods_and_other_crates_are_no_references() {
    let files = [
        ("root", "mod bytes; mod a;"),
        ("bytes", "pub struct Bytes;"),
        (
            "a",
            "use std::bytes::Bytes; fn f(x: X) { x.bytes(); x.a; Vec::<u8>::bytes::new(); }",
        ),
    ];
    assert_eq!(references(&files), Vec::<String>::new());
}

#[test]
fn a_cycle_has_all_files_that_reach_each_other() {
    let files = [
        ("root", "mod a; mod b; mod c; mod d; use a::A; struct R(A);"),
        ("a", "pub struct A(crate::b::B);"),
        ("b", "pub struct B(crate::c::C);"),
        ("c", "pub struct C(crate::a::A, crate::d::D);"),
        ("d", "pub struct D;"),
    ];
    let found = cycles(&names(&files).references());
    assert_eq!(found, [["a", "b", "c"].map(str::to_owned).into()]);
}

#[test]
fn a_long_cycle_is_reported_with_its_files() {
    let cycle: BTreeSet<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
    assert_eq!(
        describe("node", &cycle),
        "`node` has a cycle of 4 files, more than 3: a b c d"
    );
}
