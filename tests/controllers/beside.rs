//! Tests where the controllers of an embedded store run: in a command that changes a ReleasePin, or in a
//! permanent process.

use std::sync::Arc;

use bowline::controllers::lock::Lock;
use kube::runtime::wait::await_condition;

use crate::HANG;
use crate::pins::{Pins, is_ready};
use crate::place::Target;
use crate::process::Process;
use crate::shop::Shop;
use crate::user::User;

pub async fn a_command_runs_them_until_its_pin_is_observed(target: Arc<Target>) {
    let shop = Shop::open(&target, &["cart"]).await;
    shop.data_plane().await;
    let user = User::of(&target);
    let store = target.home.path().join("store.db");
    user.done("deploy cart -e dev --release cart-3").await;
    let pin = shop.pins().get("cart-dev").await.unwrap();
    let status = pin.status.clone().unwrap();
    assert_eq!(status.observed_generation, pin.metadata.generation);
    assert!(
        Lock::take(&store).unwrap().is_some(),
        "nobody runs them any more"
    );
    // With --wait, the command runs the controllers until the ReleasePin is ready.
    user.done("deploy cart -e dev --release cart-1 --wait")
        .await;
    let pin = shop.pins().get("cart-dev").await.unwrap();
    assert!(is_ready(&pin), "{:?}", pin.status);
    // `bowline apply` of a ReleasePin also runs the controllers.
    let file = target.home.path().join("pin.yaml");
    let text = "{apiVersion: openchoreo.dev/v1alpha1, kind: ReleasePin, metadata: {name: cart-staging, labels: {openchoreo.dev/component: cart, openchoreo.dev/environment: staging}}, spec: {component: cart, environment: staging, releaseRef: {name: cart-2}}}";
    std::fs::write(&file, text).unwrap();
    user.done(&format!("apply -f {}", file.display())).await;
    let pin = shop.pins().get("cart-staging").await.unwrap();
    let status = pin.status.unwrap();
    assert_eq!(status.observed_generation, pin.metadata.generation);
    // A command that changed no ReleasePin does not wait.
    let lock = Lock::take(&store).unwrap().expect("nobody has it");
    user.done(&format!("apply -f {}", file.display())).await;
    user.done("deploy cart -e dev --release cart-1").await;
    drop(lock);
}

pub async fn one_process_runs_them_and_another_takes_over(target: Arc<Target>) {
    let pins = Pins::open(&target, 2).await;
    let store = target.home.path().join("store.db");
    let first = Process::start(&target, "first", target.flags()).await;
    pins.agree().await;
    assert!(Lock::take(&store).unwrap().is_none(), "the first has it");
    let second = Process::start(&target, "second", target.flags()).await;
    // A command runs no controllers while another process runs them.
    let user = User::of(&target);
    user.done("deploy c0 -e dev --release c0-3").await;
    let ready = await_condition(pins.shop.pins(), "c0-dev", |pin: Option<&_>| {
        pin.is_some_and(is_ready)
    });
    tokio::time::timeout(HANG, ready).await.unwrap().unwrap();
    let (code, said) = second.get("/readyz").await;
    assert_eq!(
        (code, said.as_str()),
        (200, "ok: waiting: another process is the leader\n"),
        "{}",
        second.log()
    );
    first.kill();
    pins.move_all("2").await;
    pins.agree().await;
    let (code, said) = second.get("/readyz").await;
    assert_eq!(
        (code, said.as_str()),
        (200, "ok: acting\n"),
        "{}",
        second.log()
    );
    let (_, text) = second.get("/metrics").await;
    for line in [
        "bowline_leader 1",
        r#"bowline_releases{namespace="beside-one-process-runs-them-and-another-takes-ove",component="c0"} 3"#,
    ] {
        assert!(text.contains(line), "{text}");
    }
    pins.verify(|_, _| "2".to_owned()).await;
    assert_eq!(second.stop().await.code(), Some(0));
    assert!(Lock::take(&store).unwrap().is_some(), "it was let go");
}
