//! Rollbacks to the last good revision, to a chosen release, and to a chosen revision.

use super::Story;

#[tokio::test]
async fn a_rollback_in_production_wants_its_name_and_why() {
    let mut story = Story::shop().await;
    story.keys("g g l l").shows("cart in prod").await;
    story.keys("R").shows("type prod and why").await;
    story.shows("last good here").await;
    story.shows("data.image").await;
    story.keys("enter").shows("type prod to confirm").await;
    story
        .types("prod")
        .keys("enter")
        .shows("Add a reason after the name")
        .await;
    story
        .types(" errors up")
        .keys("enter")
        .shows("cart in prod rolls out cart-v1, revision 3")
        .await;
    let pin = story.pin("cart", "prod").await;
    assert_eq!(pin.spec.release_ref.name, "cart-v1");
    assert_eq!(pin.spec.holds.len(), 1);
    assert_eq!(pin.spec.holds[0].reason.as_deref(), Some("errors up"));
    assert_eq!(pin.spec.holds[0].owner, "ana");
}

#[tokio::test]
async fn what_somebody_changed_meanwhile_is_told_and_nothing_is_done() {
    let mut story = Story::shop().await;
    story.keys("g g l l R").shows("type prod and why").await;
    story.shows("data.image").await;
    story.meanwhile("tom", "cart-prod", "cart-v3").await;
    story.shows("tom changed cart-prod to cart-v3").await;
    story
        .types("prod late")
        .keys("enter")
        .shows("out of date: ctrl-r plans again")
        .await;
    assert_eq!(story.names("cart", "prod").await, "cart-v3");
}

#[tokio::test]
async fn where_nothing_was_good_before_nothing_is_gone_back_to() {
    let mut story = Story::shop().await;
    story.keys("g g j h h").shows("ledger in dev").await;
    story
        .keys("R")
        .shows("ledger has no release to roll back to")
        .await;
    story.shows("refused").await;
    story.keys("esc").command("rollback ledger-v9");
    story.shows("release ledger-v9 does not exist").await;
    assert_eq!(story.names("ledger", "dev").await, "ledger-v1");
}

#[tokio::test]
async fn without_a_controller_a_rollback_offers_the_revisions() {
    let mut story = Story::shop().await;
    story._lock = None;
    story.keys("g g l l").shows("cart in prod").await;
    story.keys("R").shows("matrix > revisions").await;
    story.shows("no controller runs").await;
    story.shows("R rolls back to it").await;
    story.hides("--to-revision");
    story.shows("edited by ana").await;
    story.keys("j R").shows("--to-revision 1").await;
    story.shows("data.image").await;
    story.types("prod back").keys("enter");
    story
        .shows("cart in prod rolls out cart-v1, revision 3")
        .await;
}
