//! Tests that the bodies of objects do not fill the memory of a process. They stay on disk during writes,
//! lists and watches.

use std::path::Path;

use bytes::Bytes;
use futures::StreamExt;
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, PostParams};

use super::child::{Other, say};
use super::*;

const SIZE: u64 = 100_000;

/// Returns the current and the peak resident memory of this process, in kilobytes.
fn resident() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name));
        let number = line.and_then(|line| line.split_whitespace().nth(1));
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    };
    (of("VmRSS:"), of("VmHWM:"))
}

fn tell(what: &str) {
    let (now, most) = resident();
    say(&format!("{what} {now} {most}"));
}

/// Stores large objects and lists them in every way. Reports the memory of this process after each step.
pub async fn remember(file: &Path, arguments: &str) {
    let count: u64 = arguments.parse().unwrap();
    let embedded = open(file).await;
    let api: Api<ConfigMap> = Api::default_namespaced(embedded.client("default"));
    tell("open");
    let write = |number: u64| {
        let api = api.clone();
        async move {
            // The text is random, so that it cannot be compressed.
            let mut dice = Dice(number + 1);
            let body: String = (0..SIZE)
                .map(|_| char::from(b'a' + dice.roll(26) as u8))
                .collect();
            let object = config_map(&format!("n{number:05}"), &body);
            api.create(&PostParams::default(), &object).await.unwrap();
        }
    };
    futures::stream::iter(0..count)
        .for_each_concurrent(4, write)
        .await;
    tell("written");
    let mut found = 0;
    let mut pages = ListParams::default().limit(500);
    loop {
        let page = api.list_metadata(&pages).await.unwrap();
        found += page.items.len() as u64;
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => pages = pages.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(found, count);
    tell("metadata");
    let mut pages = ListParams::default().limit(20);
    let mut found = 0;
    loop {
        let page = api.list(&pages).await.unwrap();
        found += page.items.len() as u64;
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => pages = pages.continue_token(&token),
            None => break,
        }
    }
    assert_eq!(found, count);
    tell("pages");
    let request = http::Request::get("/api/v1/configmaps")
        .body(Bytes::new())
        .unwrap();
    let mut whole = embedded.call(request).await.into_body();
    let mut bytes = 0;
    while let Some(frame) = whole.frame().await {
        bytes += frame.unwrap().data_ref().map_or(0, Bytes::len) as u64;
    }
    assert!(bytes > count * SIZE);
    tell("streamed");
}

#[test]
fn bodies_stay_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let count: u64 = sized(500, 10_000);
    let file = folder.path().join("store.db");
    let mut other = Other::start("remember", &file, &count.to_string());
    let mut told = Vec::new();
    while let Some(words) = other.says() {
        let (now, most): (u64, u64) = (words[1].parse().unwrap(), words[2].parse().unwrap());
        println!(
            "resident with {count} x 100 KB, {}: {} MB, at most {} MB",
            words[0],
            now >> 10,
            most >> 10
        );
        told.push((words[0].clone(), now, most));
    }
    other.ends_well();
    assert_eq!(told.len(), 5, "{told:?}");
    let (_, base, _) = told[0];
    let (_, _, most) = told[4];
    let data = count * SIZE / 1024;
    assert!(most - base < sized(data, data / 10), "{told:?}");
}
