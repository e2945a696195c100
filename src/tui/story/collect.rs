//! Garbage collection: deletes the releases and snapshots that nothing uses, and no other objects.

use serde_json::json;

use super::Story;
use super::shop::{released, retains};
use crate::engine::world::{Key, World};

/// Opens the shop with two more releases, v4 and v5, that no ReleasePin names. The retention keeps
/// the newer one.
async fn with_waste() -> Story {
    let mut story = Story::shop().await;
    let namespace = story.model.target_info.namespace.clone();
    for version in ["v4", "v5"] {
        released(&story.client, "cart", version).await;
    }
    retains(&story.client, json!({"keepReleases": 1, "minAge": "0"})).await;
    let newest = Key::new(&namespace, "cart-v5");
    let known = |world: &World| {
        let pipeline = world.pipeline(&namespace);
        let retains = pipeline.is_some_and(|pipeline| pipeline.retention.is_some());
        retains && world.release(&newest).is_some()
    };
    story.knows(known).await;
    story
        .keys("g c f")
        .shows("no ReleasePin refers to it")
        .await;
    story
}

#[tokio::test]
async fn what_nobody_needs_goes_once_its_count_is_typed() {
    let mut story = with_waste().await;
    story.shows("1 can be deleted").await;
    story.shows("cart-v4").await;
    story.hides("cart-v1");
    story.keys("X").shows("1 of 6 objects can be deleted").await;
    story.shows("type 1").await;
    story
        .keys("enter")
        .shows("Type the number of objects (1)")
        .await;
    story
        .types("2")
        .keys("enter")
        .shows("Type the number of objects (1)")
        .await;
    story.keys("backspace").types("1 tidying up").keys("enter");
    story.shows("1 deleted").await;
    assert!(story.release("cart-v4").await.is_none());
    for kept in ["cart-v1", "cart-v2", "cart-v3", "cart-v5", "ledger-v1"] {
        assert!(story.release(kept).await.is_some(), "{kept}");
    }
    story.keys("esc g a").shows("tidying up").await;
}

#[tokio::test]
async fn where_everything_is_needed_nothing_goes() {
    let mut story = Story::shop().await;
    story.keys("g c").shows("0 can be deleted").await;
    story.shows("younger than 30d").await;
    story.keys("X").shows("0 of 4 objects can be deleted").await;
    story.shows("Nothing can be deleted").await;
    story.types("0").keys("enter").hides("0 deleted");
    story.keys("esc").shows("0 can be deleted").await;
}

#[tokio::test]
async fn what_somebody_pins_meanwhile_stays() {
    let mut story = with_waste().await;
    story.keys("X").shows("type 1").await;
    story.meanwhile("tom", "cart-dev", "cart-v4").await;
    story
        .shows("cart-v4 stays now: named by the ReleasePin in dev")
        .await;
    story
        .types("1")
        .keys("enter")
        .shows("out of date: ctrl-r plans again")
        .await;
    story
        .keys("ctrl-r")
        .shows("0 of 6 objects can be deleted")
        .await;
    assert!(story.release("cart-v4").await.is_some());
}
