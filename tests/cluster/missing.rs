//! Decides what a test does if a program that it needs is missing: it fails in CI, and is skipped elsewhere.

use std::{env, ffi::OsStr};

/// Prints one line that says which tests are skipped, and why.
///
/// # Panics
///
/// Panics in CI (`CI` is set and not empty), because CI must not skip a test.
pub fn skip(tests: &str, why: &str) {
    let line = format!("skipped: {tests}: {why}");
    assert!(
        !is_ci(env::var_os("CI").as_deref()),
        "CI skips nothing; {line}"
    );
    eprintln!("{line}");
}

fn is_ci(variable: Option<&OsStr>) -> bool {
    variable.is_some_and(|value| !value.is_empty())
}

#[test]
fn only_an_absent_or_empty_variable_allows_to_skip() {
    for (value, expected) in [
        (None, false),
        (Some(""), false),
        (Some("true"), true),
        (Some("1"), true),
        (Some("github"), true),
        (Some("false"), true),
    ] {
        assert_eq!(is_ci(value.map(OsStr::new)), expected, "CI={value:?}");
    }
}
