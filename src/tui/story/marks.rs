//! Marks: users mark releases bad or good.

use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use serde_json::json;

use super::Story;
use crate::api::{Release, labels};

#[tokio::test]
async fn a_release_is_marked_bad_with_a_reason_and_absolved() {
    let mut story = Story::shop().await;
    story.keys("g g l l").shows("cart in prod").await;
    story.keys("B").shows("type why").await;
    story.shows("mark bad  cart-v2").await;
    story.shows("a mark does not stop it").await;
    story.keys("enter").shows("Type a reason").await;
    story.types("leaks connections");
    story
        .shows("bowline mark bad cart-v2 --reason 'leaks connections'")
        .await;
    story.keys("enter").shows("cart-v2 is marked bad").await;
    let marked = story.release("cart-v2").await.unwrap();
    let mark = &marked.annotations()[labels::MARK];
    assert!(
        mark.contains("leaks connections") && mark.contains("ana"),
        "{mark}"
    );
    story
        .keys("esc g r")
        .shows("bad, ana: leaks connections")
        .await;
    // The release is already marked bad, so it cannot be marked bad again.
    story.keys("/").types("v2").keys("enter B");
    story.shows("Already marked bad").await;
    story
        .keys("esc A")
        .shows("marked good   promotion and rollback")
        .await;
    // A good mark that replaces a bad mark also needs a reason.
    story.keys("enter").shows("Type a reason").await;
    story.types("fixed by a patch").keys("enter");
    story.shows("cart-v2 is marked good").await;
}

#[tokio::test]
async fn a_release_that_is_not_there_is_not_marked() {
    let mut story = Story::shop().await;
    story.meanwhile("tom", "ledger-dev", "ledger-v9").await;
    story
        .keys("g g j h h")
        .shows("release ledger-v9 does not exist")
        .await;
    story.keys("B").shows("refused").await;
    story.shows("g r lists the releases").await;
}

#[tokio::test]
async fn a_mark_that_somebody_set_meanwhile_stands() {
    let mut story = Story::shop().await;
    story.keys("g g l l B").shows("type why").await;
    let tom = story.somebody("tom").await;
    let releases: Api<Release> = Api::default_namespaced(tom.client);
    let mark = json!({"verdict": "good", "by": "tom", "at": "2026-01-06T12:00:00Z"});
    let patch = json!({"metadata": {"annotations": {labels::MARK: mark.to_string()}}});
    releases
        .patch("cart-v2", &PatchParams::default(), &Patch::Merge(patch))
        .await
        .unwrap();
    story.shows("cart-v2 was marked good by tom").await;
    story.types("leaks").keys("enter");
    story.shows("out of date: ctrl-r plans again").await;
    // The reason that the user typed stays when bowline makes the plan again.
    story.keys("ctrl-r").shows("from      marked good").await;
    story.shows("type why leaks").await;
}

#[tokio::test]
async fn a_release_that_went_meanwhile_is_not_marked() {
    let mut story = Story::shop().await;
    story.keys("g g h h P").shows("data.image").await;
    story.keys("esc g r /").types("ledger").keys("enter B");
    story.shows("type why").await;
    let releases: Api<Release> = Api::default_namespaced(story.client.clone());
    releases
        .delete("ledger-v1", &DeleteParams::default())
        .await
        .unwrap();
    story.shows("release ledger-v1 was deleted").await;
    story.types("leaks").keys("enter");
    story.shows("out of date: ctrl-r plans again").await;
    story
        .keys("ctrl-r")
        .shows("release ledger-v1 does not exist")
        .await;
}
