//! Looking into things: comparisons, revisions and whole objects.

use super::Story;

#[tokio::test]
async fn a_place_is_compared_with_the_one_before_it() {
    let mut story = Story::shop().await;
    story.keys("g g h l").shows("cart in staging").await;
    story.keys("d").shows("shop/cart:v3").await;
    story.shows("shop/cart:v2").await;
    story.keys("y").shows("is on the clipboard").await;
    let copied = story.copied.last().unwrap();
    assert!(copied.contains("-  image: shop/cart:v3"), "{copied}");
    assert!(copied.contains("+  image: shop/cart:v2"), "{copied}");
    story.keys("esc").shows("cart in staging").await;
}

#[tokio::test]
async fn what_a_plan_changes_is_read_as_a_diff() {
    let mut story = Story::shop().await;
    story.keys("g g h h P").shows("data.image").await;
    story.keys("d").shows("matrix > promote > diff").await;
    story.shows("shop/cart:v3").await;
    story.keys("esc").shows("[ y apply ]").await;
}

#[tokio::test]
async fn revisions_say_who_did_what_and_are_gone_back_to() {
    let mut story = Story::promoted().await;
    story.keys("esc l g v").shows("promoted by ana").await;
    story.shows("cart in staging").await;
    story.keys("enter").shows("revision 1").await;
    story.shows("shop/cart:v2").await;
    story
        .keys("esc j R")
        .shows("rollback  cart  in  staging")
        .await;
    story.shows("--to-revision 1").await;
    story.shows("data.image").await;
    story.keys("y");
    story
        .shows("cart in staging is at cart-v2, revision 3")
        .await;
    story.keys("esc").shows("rolled back").await;
}

#[tokio::test]
async fn what_nobody_recorded_is_told_as_far_as_the_pin_remembers_it() {
    let mut story = Story::shop().await;
    story.keys("g g l l g v").shows("edited by ana").await;
    story.keys("d").shows("shop/cart:v1").await;
    story.keys("esc j");
    story.shows("nobody recorded who put it there").await;
    story.keys("d").shows("has no revision before 1").await;
}

#[tokio::test]
async fn objects_are_read_whole() {
    let mut story = Story::shop().await;
    story
        .keys("g g l l g p enter")
        .shows("kind: ReleasePin")
        .await;
    story.shows("name: cart-prod").await;
    story.hides("managedFields");
    story.keys("esc g r /").types("cart-v3").keys("enter enter");
    story.shows("kind: Release").await;
    story.keys("/").types("image:").keys("enter");
    story.shows("image: shop/cart:v3").await;
}

#[tokio::test]
async fn an_object_that_went_says_so() {
    use crate::api::Release;
    use kube::api::{Api, DeleteParams};
    let mut story = Story::shop().await;
    story.keys("g r /").types("ledger").keys("enter");
    story.shows("1 shown").await;
    let releases: Api<Release> = Api::default_namespaced(story.client.clone());
    releases
        .delete("ledger-v1", &DeleteParams::default())
        .await
        .unwrap();
    story.keys("enter").shows("not found").await;
}
