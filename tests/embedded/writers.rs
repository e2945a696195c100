//! Several writers replace the same version of an object at the same time. One write must succeed, and the
//! others must get a conflict.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, PostParams};

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_writers_and_one_winner_each_round() {
    let folder = tempfile::tempdir().unwrap();
    let client = open(&folder.path().join("store.db"))
        .await
        .client("default");
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let object = config_map("contested", "");
    let mut current = api.create(&PostParams::default(), &object).await.unwrap();
    let rounds = sized(20, 200);
    for round in 0..rounds {
        let writers = (0..50).map(|writer| {
            let (api, mut object) = (api.clone(), current.clone());
            object.data = Some(BTreeMap::from([(
                "data".into(),
                format!("{round} {writer}"),
            )]));
            tokio::spawn(async move {
                api.replace("contested", &PostParams::default(), &object)
                    .await
            })
        });
        let mut won = Vec::new();
        for answer in futures::future::join_all(writers).await {
            match answer.unwrap() {
                Ok(object) => won.push(object),
                Err(kube::Error::Api(status)) => {
                    assert_eq!(
                        (status.code, status.reason.as_str()),
                        (409, "Conflict"),
                        "{status:?}"
                    );
                }
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(won.len(), 1, "winners of round {round}");
        current = won.remove(0);
        assert_eq!(api.get("contested").await.unwrap(), current);
    }
    println!("compare-and-swap: 50 writers, {rounds} rounds, one winner each");
}
