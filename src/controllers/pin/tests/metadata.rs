//! The metadata that the controller adds when another tool did not write it: claims, and audit entries of
//! edits.

use kube::api::ListParams;

use super::*;
use crate::api::Release;
use crate::api::bowline::audit::{Action as Audited, AuditEntry};
use crate::engine::audit;
use crate::subjects::release_pin::kind::live;

#[tokio::test]
async fn edits_are_recorded_and_what_they_name_is_claimed() {
    let shop = Shop::open().await;
    for version in ["1", "2"] {
        shop.release(version).await;
    }
    let (context, _) = shop.context();
    let running = start(&context, run);
    for (generation, release) in [(1, "cart-1"), (2, "cart-2"), (3, "cart-1")] {
        shop.pin("dev", release).await;
        let pin = shop
            .until_reason("dev", condition::RENDERED, "Rendered")
            .await;
        assert_eq!(pin.metadata.generation, Some(generation));
    }
    running.stop().await;
    let pin = shop.get_pin("dev").await;
    let all = ListParams::default();
    let mut entries = shop.api::<AuditEntry>().list(&all).await.unwrap().items;
    entries.sort_by_key(|entry| entry.spec.revision);
    let verdict = audit::verify(&live(std::slice::from_ref(&pin)), &entries);
    assert!(
        verdict.is_valid() && verdict.warnings.is_empty(),
        "{verdict:?}"
    );
    let said: Vec<_> = entries
        .iter()
        .map(|entry| {
            let spec = &entry.spec;
            let to = spec
                .to
                .as_ref()
                .map(|to| to.name.as_str())
                .unwrap_or_default();
            (
                spec.revision,
                spec.action,
                to,
                spec.actor.as_deref(),
                spec.recorded_by.as_str(),
            )
        })
        .collect();
    let edit = |revision, to| (revision, Audited::Edit, to, Some("ana"), "controller");
    assert_eq!(
        said,
        [edit(1, "cart-1"), edit(2, "cart-2"), edit(3, "cart-1")]
    );
    for release in ["cart-1", "cart-2"] {
        let found = shop.api::<Release>().get(release).await.unwrap();
        assert!(found.is_pinned(), "{release}");
        assert_eq!(found.claim().unwrap().unwrap().operation, "controller");
    }
}
