//! Computes the hash of a value: SHA-256 of its canonical JSON, in lowercase hex. All hashes come from this
//! module, so they can be compared.

use serde::Serialize;
use sha2::{Digest, Sha256};

/// Returns the hash of a value. The keys of objects are sorted before the hash, so equal values have equal
/// hashes.
pub fn of(value: &impl Serialize) -> String {
    // Converts the value to a JSON tree, because the tree sorts its keys. A struct would have its fields in
    // the order of the code.
    let tree = serde_json::to_value(value).expect("BUG: a hashed value is JSON");
    let text = serde_json::to_vec(&tree).expect("BUG: a JSON value is JSON");
    of_bytes(&text)
}

/// Returns the SHA-256 of bytes, in lowercase hex.
pub fn of_bytes(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_of_keys_does_not_count() {
        let one: serde_json::Value =
            serde_json::from_str(r#"{"b": 1, "a": {"d": 2, "c": 3}}"#).unwrap();
        let two: serde_json::Value = serde_json::from_str(r#"{"a":{"c":3,"d":2},"b":1}"#).unwrap();
        assert_eq!(of(&one), of(&two));
        assert_ne!(of(&one), of(&json!({"b": 1})));
    }

    #[test]
    fn the_hash_is_sha_256_in_hex() {
        assert_eq!(
            of_bytes(b"abc"),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
