//! Stops the controller between any two writes, and checks that a second controller completes the work.

use kube::api::ListParams;

use super::*;
use crate::api::{AuditEntry, ComponentEnvSnapshot, Release, RenderedRelease};
use crate::engine::audit;
use crate::subjects::release_pin::kind::live;

/// Returns the final state of all objects, without the fields that differ between two test runs.
async fn end(shop: &Shop) -> serde_json::Value {
    let pin = shop.get_pin("dev").await;
    let all = ListParams::default();
    let entries = shop.api::<AuditEntry>().list(&all).await.unwrap().items;
    let verdict = audit::verify(&live(std::slice::from_ref(&pin)), &entries);
    assert!(
        verdict.is_valid() && verdict.warnings.is_empty(),
        "{verdict:?}"
    );
    let rendered = shop.api::<RenderedRelease>().get("cart-dev").await.unwrap();
    let snapshots = shop
        .api::<ComponentEnvSnapshot>()
        .list(&all)
        .await
        .unwrap()
        .items;
    let snapshots: Vec<_> = snapshots
        .iter()
        .map(|one| {
            (
                one.name_any(),
                one.labels().clone(),
                one.annotations().clone(),
                &one.spec,
            )
        })
        .collect();
    let releases = shop.api::<Release>().list(&all).await.unwrap().items;
    let pinned: Vec<_> = releases.iter().map(Release::is_pinned).collect();
    serde_json::json!({
        "status": pin.status,
        "entries": entries.len(),
        "rendered": (rendered.spec, rendered.metadata.annotations, rendered.metadata.labels),
        "snapshots": snapshots,
        "pinned": pinned,
    })
}

/// Changes the release of a ReleasePin twice. If `cut` is a number, the first controller dies after that many
/// writes, and a second one continues. Returns the final state and the number of writes.
async fn lives(cut: Option<usize>) -> (serde_json::Value, usize) {
    let shop = Shop::open().await;
    let mut writes = 0;
    for version in ["1", "2"] {
        let release = shop.release(version).await;
        shop.pin("dev", &release).await;
        if let Some(cut) = cut {
            let planner = Planner::open(&shop).await;
            planner.requests.cut_after(cut);
            // The reconcile is dropped in the middle, as in a killed process.
            tokio::select! {
                () = planner.requests.blown() => {}
                (done, _) = planner.reconcile(&shop, "dev") => {
                    done.unwrap();
                    assert!(planner.requests.written() <= cut);
                }
            }
            planner.close();
        }
        let planner = Planner::open(&shop).await;
        planner.reconcile(&shop, "dev").await.0.unwrap();
        writes = planner.requests.written();
        planner.claimed(&release).await;
        planner.close();
        shop.report("cart-dev", "Healthy").await;
        let planner = Planner::open(&shop).await;
        planner.reconcile(&shop, "dev").await.0.unwrap();
        planner.close();
    }
    (end(&shop).await, writes)
}

#[tokio::test]
async fn a_crash_between_any_two_writes_ends_in_the_same() {
    let (expected, writes) = lives(None).await;
    assert!(
        writes >= 5,
        "snapshot, rendered release, claim, entry, status: {writes}"
    );
    for cut in 0..writes {
        assert_eq!(lives(Some(cut)).await.0, expected, "cut after {cut}");
    }
}
