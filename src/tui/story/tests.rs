//! What a person does, on an embedded store.

use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use super::{Story, settled};
use crate::api::ReleasePin;
use crate::connect::Options;

#[tokio::test]
async fn a_promotion_to_staging_takes_a_key_after_the_change_was_shown() {
    let mut story = Story::shop().await;
    story.keys("g g h h").shows("cart in dev").await;
    story.keys("P").shows("[ y apply ]").await;
    story.shows("data.image").await;
    story
        .shows("bowline promote cart --from dev --to staging")
        .await;
    story
        .keys("y")
        .shows("cart in staging is at cart-v3, revision 2")
        .await;
    assert_eq!(
        story.pin("cart", "staging").await.spec.release_ref.name,
        "cart-v3"
    );
    story.shows("no controller has seen the change yet").await;
    settled(&story.client, "cart", "staging", json!(null)).await;
    story.shows("cart-staging: ready").await;
}

#[tokio::test]
async fn enter_cancels_what_a_key_confirms() {
    let mut story = Story::shop().await;
    story.keys("g g h h P").shows("[ y apply ]").await;
    story.shows("data.image").await;
    story.keys("enter").shows("cart in dev").await;
    assert_eq!(
        story.pin("cart", "staging").await.spec.release_ref.name,
        "cart-v2"
    );
}

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
        .shows("a reason is wanted here")
        .await;
    story
        .types(" errors up")
        .keys("enter")
        .shows("cart in prod is at cart-v1, revision 3")
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
    let tom = story.somebody("tom").await;
    let pins: Api<ReleasePin> = Api::default_namespaced(tom.client.clone());
    let patch = json!({"spec": {"releaseRef": {"name": "cart-v3"}}});
    pins.patch("cart-prod", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
    story
        .types("prod late")
        .keys("enter")
        .shows("so nothing was done")
        .await;
    story.shows("tom").await;
    assert_eq!(
        story.pin("cart", "prod").await.spec.release_ref.name,
        "cart-v3"
    );
}

#[tokio::test]
async fn a_hold_is_placed_refuses_a_promotion_and_is_lifted() {
    let mut story = Story::shop().await;
    story.keys("g g h l").shows("cart in staging").await;
    story.keys("H").shows("a hold for ana").await;
    story.shows("nothing changes in the environment").await;
    story.keys("y").shows("cart in staging is at cart-v2").await;
    story.keys("esc").shows("Held by ana").await;
    story.keys("h P").shows("refused").await;
    story.shows("bowline unpin cart").await;
    story.keys("esc l U").shows("the hold of ana").await;
    story.shows("nothing changes in the environment").await;
    story.keys("y").shows("revision 3").await;
    assert!(story.pin("cart", "staging").await.spec.holds.is_empty());
}

#[tokio::test]
async fn a_read_only_session_shows_plans_and_applies_none() {
    let options = Options {
        readonly: true,
        ..Options::default()
    };
    let mut story = Story::with(options).await;
    story.shows("READ-ONLY").await;
    story
        .keys("g g h h P")
        .shows("read-only: --readonly was given")
        .await;
    story.shows("data.image").await;
    story.keys("y").hides("revision 2");
    assert_eq!(
        story.pin("cart", "staging").await.spec.release_ref.name,
        "cart-v2"
    );
}

#[tokio::test]
async fn the_matrix_of_a_moment_shows_what_ran_and_plans_nothing() {
    let mut story = Story::shop().await;
    story.keys("g g h h P").shows("data.image").await;
    story.keys("y").shows("cart in staging is at cart-v3").await;
    story.keys("esc T").shows("AS OF").await;
    story.shows("cart in staging was promoted by ana").await;
    story.keys("R").shows("this is the past").await;
    story.keys("[").hides("was promoted by ana");
    story.shows("AS OF").await;
    story.keys("esc").hides("AS OF");
}

#[tokio::test]
async fn what_changed_around_an_incident_is_ranked() {
    let mut story = Story::shop().await;
    story.keys("g g h h P").shows("data.image").await;
    story.keys("y").shows("cart in staging is at cart-v3").await;
    story.keys("esc :").types("since 1m").keys("enter");
    story.shows("the likeliest cause first").await;
    story.shows("promoted by ana").await;
}
