//! Splits a YAML text into its documents without parsing them.

/// Splits a text before each `---` at the start of a line, which always separates documents. The concatenated
/// parts are equal to the text.
pub fn split(text: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    let mut begin = 0;
    for at in memchr::memmem::find_iter(text, b"\n---") {
        let behind = text.get(at + 4);
        if behind.is_none_or(u8::is_ascii_whitespace) {
            found.extend(text.get(begin..=at));
            begin = at + 1;
        }
    }
    found.extend(text.get(begin..));
    found
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn a_text_is_cut_where_documents_begin() {
        for (text, expected) in [
            ("", &[""][..]),
            ("a: 1\n", &["a: 1\n"]),
            ("---\na: 1\n", &["---\na: 1\n"]),
            ("a: 1\n---\nb: 2\n---", &["a: 1\n", "---\nb: 2\n", "---"]),
            ("a: 1\n--- {b: 2}\r\n", &["a: 1\n", "--- {b: 2}\r\n"]),
            ("a: |\n  ---\n---b: 2\n", &["a: |\n  ---\n---b: 2\n"]),
        ] {
            let cut: Vec<&str> = split(text.as_bytes())
                .into_iter()
                .map(|part| std::str::from_utf8(part).unwrap())
                .collect();
            assert_eq!(cut, expected, "{text:?}");
        }
    }
}
