//! Screens that only read: comparisons, revisions, and objects as text.

use super::{Story, shop};
use crate::fixture::install_kinds;

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
        .shows("cart in staging rolls out cart-v2, revision 3")
        .await;
    story.keys("esc").shows("rollback").await;
}

#[tokio::test]
async fn what_nobody_recorded_is_told_as_far_as_the_pin_remembers_it() {
    let mut story = Story::shop().await;
    story.keys("g g l l g v").shows("edited by ana").await;
    story.keys("d").shows("shop/cart:v1").await;
    story.keys("esc j");
    story
        .shows("the user who deployed it is not recorded")
        .await;
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

#[tokio::test]
async fn the_matrix_appears_when_the_kinds_are_installed_elsewhere() {
    let mut story = Story::without_kinds().await;
    let elsewhere = story.somebody("bob").await;
    story
        .shows("does not have bowline's kinds: ReleasePin, Release, ComponentEnvSnapshot")
        .await;
    story.shows("nothing is wrong with the cluster").await;
    story.shows(":ns NAME switches to another namespace").await;
    story.shows("kinds missing").await;
    story
        .keys("g r")
        .shows("does not have the kind Release")
        .await;
    story.keys("esc");
    install_kinds(&elsewhere.client).await.unwrap();
    story.shows("nothing is deployed in namespace").await;
    shop::fill(&elsewhere).await;
    story.shows("ledger").await;
}

#[tokio::test]
async fn the_release_under_the_cursor_is_copied() {
    let mut story = Story::shop().await;
    story.keys("g g h l y").shows("copied cart-v2").await;
    assert_eq!(story.copied.last().unwrap(), "cart-v2");
    story.keys("Y").shows("copied bowline status cart").await;
}

#[tokio::test]
async fn releases_environments_and_namespaces_are_completed() {
    let mut story = Story::shop().await;
    story.keys("g g h l :").types("rollback cart-").keys("tab");
    story.shows(":rollback cart-v3").await;
    story.keys("tab").shows(":rollback cart-v2").await;
    story.keys("shift-tab").shows(":rollback cart-v3").await;
    story.keys("ctrl-u").types("promote s").keys("tab");
    story.shows(":promote staging").await;
    story.keys("ctrl-u").types("ns ").shows("\n default").await;
    story.types("de").keys("tab").shows(":ns default").await;
}
