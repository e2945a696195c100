use kube::ResourceExt;

use super::*;
use crate::testing::{Shop, release_of, start};

#[tokio::test]
async fn what_was_left_out_is_filled_in_and_what_stands_there_is_kept() {
    let shop = Shop::open().await;
    let bare = shop.release("1").await;
    let (context, requests) = shop.context();
    let running = start(&context, run);
    let full = |release: Option<&Release>| {
        release.is_some_and(|release| release.annotations().contains_key(labels::CONTENT_HASH))
    };
    let bare = shop.until(&bare, full).await.unwrap();
    let made = release_of("1");
    let expected = |name| made.annotations().get(name);
    for name in [labels::CONTENT_HASH, labels::SIZE, labels::IMAGES] {
        assert_eq!(bare.annotations().get(name), expected(name), "{name}");
    }
    assert_eq!(bare.labels().get(labels::COMPONENT).unwrap(), "cart");

    // A Release as GitOps repositories contain it: with labels, but without annotations.
    let mut labelled = release_of("2");
    labelled.metadata.annotations = None;
    labelled
        .labels_mut()
        .insert(labels::COMPONENT.to_owned(), "kept".to_owned());
    let labelled = shop.create(&labelled).await;
    let labelled = shop.until(&labelled, full).await.unwrap();
    assert_eq!(labelled.labels().get(labels::COMPONENT).unwrap(), "kept");
    assert_eq!(
        labelled.annotations().get(labels::VERSION_TEXT).unwrap(),
        "2"
    );

    // The controller writes nothing to a complete release.
    let written = requests.written();
    shop.create(&release_of("3")).await;
    let last = shop.release("4").await;
    shop.until(&last, full).await;
    assert_eq!(requests.written(), written + 1);
    running.stop().await;
}

#[test]
fn only_what_is_missing_is_written() {
    let release = release_of("1");
    let row = |change: fn(&mut ReleaseRow)| {
        let mut world = World::new();
        let mut stored = release.metadata.clone();
        stored.namespace = Some("shop".to_owned());
        stored.uid = Some("u".to_owned());
        world.releases(crate::engine::world::Event::Applied(
            kube::api::PartialObjectMeta {
                metadata: stored,
                ..Default::default()
            },
        ));
        let mut row = world.all_releases().next().unwrap().clone();
        change(&mut row);
        row
    };
    for (row, lacks, adds) in [
        (row(|_| ()), false, vec![labels::VERSION_TEXT]),
        (
            row(|row| row.size = None),
            true,
            vec![labels::SIZE, labels::VERSION_TEXT],
        ),
        (
            row(|row| row.images = None),
            true,
            vec![labels::IMAGES, labels::VERSION_TEXT],
        ),
        (
            row(|row| row.component = None),
            true,
            vec![labels::VERSION_TEXT],
        ),
        (
            row(|row| {
                row.hash = None;
                row.deleting = true;
            }),
            false,
            vec![labels::VERSION_TEXT],
        ),
    ] {
        assert_eq!(is_lacking(&row), lacks, "{row:?}");
        let metadata = missing(&row, &release.spec, None).unwrap();
        let annotations = metadata["annotations"].as_object().unwrap();
        assert_eq!(annotations.keys().collect::<Vec<_>>(), adds);
        assert_eq!(metadata.get("labels").is_some(), row.component.is_none());
    }
}
