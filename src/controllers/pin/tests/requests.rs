//! Tests which requests one reconcile of a ReleasePin sends.

use super::*;

const CLAIM: &str = "PATCH releases/cart-1";

#[tokio::test]
async fn nothing_is_asked_where_nothing_changed() {
    let shop = Shop::open().await;
    shop.release("1").await;
    let pin = shop.pin("dev", "cart-1").await;
    let uid = pin.uid().unwrap();
    let entry = "POST auditentries".to_owned();
    let planner = Planner::open(&shop).await;
    let (done, mut asked) = planner.reconcile(&shop, "dev").await;
    assert_eq!(done.unwrap(), Action::await_change());
    let snapshot = shop.get_pin("dev").await.status.unwrap().snapshot.unwrap();
    let keep = format!("PATCH componentenvsnapshots/{snapshot}");
    // The status is the last request. The other requests may have any order.
    assert_eq!(asked.pop().unwrap(), "PUT releasepins/cart-dev/status");
    asked.sort();
    let expected = [
        "GET releases/cart-1",
        &keep,
        CLAIM,
        "PATCH releases/cart-dev",
        "POST ",
        &entry,
    ];
    assert_eq!(asked, expected, "{uid}");
    planner.claimed("cart-1").await;
    let (_, asked) = planner.reconcile(&shop, "dev").await;
    assert_eq!(asked, [""; 0]);

    // A change of health writes only the status.
    shop.report("cart-dev", "Healthy").await;
    planner.row("cart-dev", |row| row.report.is_some()).await;
    let (_, asked) = planner.reconcile(&shop, "dev").await;
    assert_eq!(asked, ["PUT releasepins/cart-dev/status"]);
    let (_, asked) = planner.reconcile(&shop, "dev").await;
    assert_eq!(asked, [""; 0]);

    // A ReleasePin of another environment uses the cached content of the release.
    shop.pin("prod", "cart-1").await;
    let (_, asked) = planner.reconcile(&shop, "prod").await;
    let read = asked.iter().any(|line| line.starts_with("GET"));
    assert!(!read, "{asked:?}");
    planner.close();

    // After a restart, a reconcile reads the release again and writes nothing.
    let planner = Planner::open(&shop).await;
    let (_, asked) = planner.reconcile(&shop, "dev").await;
    assert_eq!(asked, ["GET releases/cart-1"]);
    planner.close();
}

#[tokio::test]
async fn an_edit_by_somebody_else_is_put_right_and_what_is_gone_is_made_again() {
    let shop = Shop::open().await;
    shop.release("1").await;
    let (context, _) = shop.context();
    let running = start(&context, run);
    shop.pin("dev", "cart-1").await;
    let pin = shop
        .until_reason("dev", condition::READY, condition::NOT_OBSERVED)
        .await;
    let rendered = shop.api::<crate::api::RenderedRelease>();
    let before = rendered.get("cart-dev").await.unwrap();
    let edit = serde_json::json!({"spec": {"environmentName": "elsewhere"}});
    let edit = kube::api::Patch::Merge(&edit);
    let params = kube::api::PatchParams::default();
    rendered.patch("cart-dev", &params, &edit).await.unwrap();
    let again = shop
        .until("cart-dev", |found: Option<&crate::api::RenderedRelease>| {
            found.is_some_and(|found| {
                found.metadata.generation > Some(2) && found.spec == before.spec
            })
        })
        .await;
    assert_eq!(again.unwrap().uid(), before.uid());

    let gone = kube::api::DeleteParams::default();
    rendered.delete("cart-dev", &gone).await.unwrap();
    let again = shop
        .until("cart-dev", |found: Option<&crate::api::RenderedRelease>| {
            found.is_some_and(|found| found.uid() != before.uid())
        })
        .await;
    assert_eq!(again.unwrap().spec, before.spec);

    let snapshot = pin.status.unwrap().snapshot.unwrap();
    let snapshots = shop.api::<crate::api::ComponentEnvSnapshot>();
    let before = snapshots.get(&snapshot).await.unwrap();
    snapshots.delete(&snapshot, &gone).await.unwrap();
    let again = shop
        .until(
            &snapshot,
            |found: Option<&crate::api::ComponentEnvSnapshot>| {
                found.is_some_and(|found| found.uid() != before.uid())
            },
        )
        .await;
    assert_eq!(again.unwrap().spec, before.spec);
    running.stop().await;
}
