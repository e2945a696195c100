//! Changes one byte of a stored audit entry in the storage of the server, without the API. `audit verify`
//! must detect the change.

use std::sync::Arc;
use std::time::Instant;

use kube::ResourceExt;
use serde_json::Value;

use crate::place::Target;
use crate::shop::Shop;
use crate::sized;
use crate::user::User;

/// Collects the JSON pointers to all scalar values inside a value.
fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                leaves(field, &format!("{path}/{name}"), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                leaves(item, &format!("{path}/{index}"), found);
            }
        }
        Value::String(_) | Value::Number(_) => found.push(path.to_owned()),
        _ => {}
    }
}

/// Returns the stored object with one changed value: another last character in a text, or the next number.
fn changed(stored: &str, path: &str) -> String {
    let mut object: Value = serde_json::from_str(stored).unwrap();
    let leaf = object.pointer_mut(path).unwrap();
    *leaf = match &*leaf {
        Value::String(text) => {
            let mut text = text.clone();
            let last = text.pop().unwrap_or('a');
            text.push(if last == '1' { '2' } else { '1' });
            text.into()
        }
        number => Value::from(number.as_i64().unwrap() + 1),
    };
    object.to_string()
}

pub async fn one_changed_byte_is_found(target: Arc<Target>) {
    let shop = Shop::open(&target, &["cart"]).await;
    let user = User::of(&target);
    for line in [
        "deploy cart -e dev --release cart-3 --reason ship",
        "pin cart -e dev --until 4h --reason INC-42",
        "unpin cart -e dev",
        "rollback cart -e dev --to cart-1 --reason INC-43",
    ] {
        user.done(line).await;
    }
    user.done("audit verify").await;
    let entries = shop.chain("cart-dev").await;
    let mut places = Vec::new();
    for entry in &entries {
        let spec = serde_json::to_value(&entry.spec).unwrap();
        let mut found = Vec::new();
        leaves(&spec, "/spec", &mut found);
        places.extend(found.into_iter().map(|path| (entry.name_any(), path)));
    }
    let stride = sized(places.len() / 8, 1);
    let (begun, mut tried) = (Instant::now(), 0);
    for (entry, path) in places.iter().step_by(stride) {
        let kept = std::sync::Mutex::new(String::new());
        let change = |stored: &str| {
            *kept.lock().unwrap() = stored.to_owned();
            changed(stored, path)
        };
        target.rewrite(entry, change).await;
        let ran = user.run("audit verify").await;
        let said = format!("{}{}", ran.out, ran.err);
        assert_eq!(ran.code, 1, "{entry} {path}: {said}");
        assert!(said.contains(entry), "{path}: {said} does not name {entry}");
        let kept = kept.into_inner().unwrap();
        target.rewrite(entry, |_| kept.clone()).await;
        tried += 1;
    }
    user.done("audit verify").await;
    println!(
        "{}: one byte changed in {tried} of {} leaves of {} entries: audit verify exits 1 and names the entry each time; in {:.1} s",
        target.name,
        places.len(),
        entries.len(),
        begun.elapsed().as_secs_f64(),
    );
}
