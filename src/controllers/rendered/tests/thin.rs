//! The shortest complete run: a RenderedRelease gets resources, an inventory and the condition Ready.

use serde_json::json;

use super::stage::*;
use crate::api::choreo::rendered::Health;
use crate::api::{condition, labels};

#[tokio::test]
async fn a_release_becomes_resources_that_become_ready() {
    let stage = Stage::new().await;
    let _running = stage.start();
    let objects = [
        deployment("shop-dev", "web", 3, "shop/web:v1"),
        config_map("shop-dev", "settings", "1"),
    ];
    stage.release("web-dev", "dev", &objects).await;
    let release = stage.until_ready("web-dev").await;
    let web = entry(&release, "Deployment", "web").unwrap();
    assert_eq!(web.health, Health::Healthy);
    assert_eq!(web.message.as_deref(), Some("3 of 3 ready"));
    assert_eq!(web.status.as_ref().unwrap()["readyReplicas"], 3);
    assert!(web.last_observed_time.is_some());
    let settings = entry(&release, "ConfigMap", "settings").unwrap();
    assert_eq!(settings.health, Health::Healthy);
    assert_eq!(settings.status, None);
    let finalizers = release.metadata.finalizers.clone().unwrap();
    assert_eq!(finalizers, [labels::DATAPLANE_CLEANUP]);
    assert_eq!(release.data_planes().unwrap(), ["embedded"]);
    let live = get(&stage.own.admin(), &objects[0]).await.unwrap();
    let own = &live["metadata"]["labels"];
    let uid = release.metadata.uid.clone().unwrap();
    assert_eq!(own[labels::RELEASE_UID], json!(uid));
    assert_eq!(own[labels::RELEASE_NAME], "web-dev");
    assert_eq!(own[labels::RELEASE_NAMESPACE], "default");
    assert_eq!(own[labels::RELEASE_RESOURCE_ID], "r0");
    assert_eq!(own[labels::MANAGED_BY], labels::RELEASE_CONTROLLER);
    let (_, reason, _) = said(&release, condition::SIMULATED).unwrap();
    assert_eq!(reason, condition::EMBEDDED_DATA_PLANE);
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop-dev"}});
    let space = get(&stage.own.admin(), &space).await.unwrap();
    let own = &space["metadata"]["labels"];
    assert_eq!(own[labels::CREATED_BY], labels::RELEASE_CONTROLLER);
    assert_eq!(own[labels::NAMESPACE_ENVIRONMENT], "dev");
    assert_eq!(own[labels::NAMESPACE_PROJECT], "shop");
    assert_eq!(own[labels::RELEASE_NAME], "web-dev");
}
