//! Holds: pinning with and without an end, changes that a hold refuses, and unpinning.

use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use super::Story;
use crate::api::ReleasePin;

#[tokio::test]
async fn a_hold_is_placed_refuses_a_promotion_and_is_lifted() {
    let mut story = Story::shop().await;
    story.keys("g g h l").shows("cart in staging").await;
    story
        .keys("H")
        .shows("pin cart in staging for how long?")
        .await;
    story.keys("enter").shows("a hold of ana").await;
    story.shows("no object changes in the environment").await;
    story
        .keys("y")
        .shows("pinned cart in staging at cart-v2")
        .await;
    story.keys("esc").shows("Held by ana").await;
    story.keys("h P").shows("refused").await;
    story.shows("U removes the hold").await;
    story.keys("U").shows("the hold of ana").await;
    story.shows("no object changes in the environment").await;
    story.keys("y").shows("revision 3").await;
    // The refused plan was open below, and bowline makes it again after esc.
    story.keys("esc").shows("U removes the hold").await;
    story.keys("ctrl-r").shows("data.image").await;
    assert!(story.pin("cart", "staging").await.spec.holds.is_empty());
}

#[tokio::test]
async fn a_hold_may_end_by_itself_and_says_why() {
    let mut story = Story::shop().await;
    story.keys("g g l l").shows("cart in prod").await;
    story.command("hold 4h").shows("type prod and why").await;
    story.shows("a hold of ana, until ").await;
    story.shows("no object changes in the environment").await;
    story.types("prod freeze for the sale").keys("enter");
    story
        .shows("pinned cart in prod at cart-v2, revision 3")
        .await;
    story.keys("esc").shows("Held by ana until ").await;
    story.shows("freeze for the sale").await;
    let pin = story.pin("cart", "prod").await;
    assert!(pin.spec.holds[0].until.is_some());
    assert_eq!(
        pin.spec.holds[0].reason.as_deref(),
        Some("freeze for the sale")
    );
}

#[tokio::test]
async fn what_is_no_hold_is_neither_placed_nor_lifted() {
    let mut story = Story::shop().await;
    story
        .keys("g g h h U")
        .shows("cart has no hold in dev")
        .await;
    story.command("hold soon").shows("is not a duration").await;
    story
        .command("pin 2020-01-31")
        .shows("is in the past")
        .await;
    story
        .keys("* U")
        .shows("no marked component has a hold in dev")
        .await;
    assert!(story.pin("cart", "dev").await.spec.holds.is_empty());
}

#[tokio::test]
async fn a_hold_on_what_somebody_moved_meanwhile_is_not_placed() {
    let mut story = Story::shop().await;
    story.keys("g g h l H enter").shows("a hold of ana").await;
    story.shows("no object changes in the environment").await;
    story.meanwhile("tom", "cart-staging", "cart-v1").await;
    story.shows("tom changed cart-staging to cart-v1").await;
    story
        .keys("y")
        .shows("out of date: ctrl-r plans again")
        .await;
    assert!(story.pin("cart", "staging").await.spec.holds.is_empty());
}

#[tokio::test]
async fn a_set_is_pinned_with_an_expiry_and_undone_as_one() {
    let mut story = Story::shop().await;
    story
        .keys("g g h h * H")
        .shows("pin 2 components in dev")
        .await;
    story.keys("3").shows("pin  2 components  in  dev").await;
    story.shows("type 2").await;
    story.shows("no object changes in the environment").await;
    story.types("2 sale").keys("enter");
    story
        .shows("pinned ledger in dev at ledger-v1, revision 2")
        .await;
    for component in ["cart", "ledger"] {
        let holds = story.pin(component, "dev").await.spec.holds;
        assert!(holds[0].until.is_some(), "{component}");
        assert_eq!(holds[0].reason.as_deref(), Some("sale"), "{component}");
    }
    story.keys("Z").shows("undo  2 components  in  dev").await;
    story.shows("no object changes in the environment").await;
    story.types("2").keys("enter");
    story
        .shows("ledger in dev still runs ledger-v1, revision 3")
        .await;
    for component in ["cart", "ledger"] {
        let holds = story.pin(component, "dev").await.spec.holds;
        assert!(holds.is_empty(), "{component}");
    }
    // The rows are still marked, so the same undo works from the matrix. It reverses the first undo.
    story
        .keys("esc Z")
        .shows("undo  2 components  in  dev")
        .await;
}

#[tokio::test]
async fn a_set_of_which_one_is_refused_is_not_begun() {
    let mut story = Story::shop().await;
    story.keys("g g h h H enter").shows("a hold of ana").await;
    story.shows("no object changes in the environment").await;
    story.keys("y").shows("pinned cart in dev at cart-v3").await;
    // Nobody has pinned ledger in dev, so there is nothing to undo.
    story
        .keys("esc * Z")
        .shows("there is no earlier state")
        .await;
    story.shows("refused").await;
    assert_eq!(story.pin("cart", "dev").await.spec.holds.len(), 1);
}

#[tokio::test]
async fn the_pane_names_who_promoted_the_release_and_not_who_holds_it() {
    let mut story = Story::promoted().await;
    story.keys("esc l").shows("promoted by ana").await;
    let tom = story.somebody("tom").await;
    let pins: Api<ReleasePin> = Api::default_namespaced(tom.client);
    let holds = json!([{"id": "t", "owner": "tom", "since": "2026-01-06T12:00:00Z"}]);
    let patch = Patch::Merge(json!({"spec": {"holds": holds}}));
    pins.patch("cart-staging", &PatchParams::default(), &patch)
        .await
        .unwrap();
    story.shows("Held by tom").await;
    story.shows("promoted by ana").await;
    story.hides("by tom:").hides("edited by");
    // ana is still shown as the user who promoted the release, because an undo that only removes a hold does not make
    // a release effective.
    story.keys("U").shows("the hold of tom").await;
    story.shows("no object changes in the environment").await;
    story.keys("y").shows("revision 4").await;
    story.keys("esc").shows("promoted by ana").await;
}
