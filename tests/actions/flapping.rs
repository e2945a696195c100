//! The status of a ReleasePin changes all the time while a user types a command. These status writes must not
//! make the command fail with a conflict.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bowline::api::ReleasePin;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use tokio::sync::watch;

use crate::place::Target;
use crate::shop::{Shop, done};
use crate::{HANG, sized};

/// The interval between two status writes to a ReleasePin whose health changes all the time.
const PACE: Duration = Duration::from_millis(20);

/// Writes the status of a ReleasePin in an endless loop, and counts the writes in `count`. `pace` is the
/// interval between two writes; None means no pause.
async fn flap(client: Client, pace: Option<Duration>, count: watch::Sender<usize>) {
    let pins: Api<ReleasePin> = Api::default_namespaced(client);
    let mut ticks = tokio::time::interval(pace.unwrap_or(PACE));
    loop {
        if pace.is_some() {
            ticks.tick().await;
        }
        let health = json!({"status": {"appliedRelease": format!("seen-{}", *count.borrow())}});
        let params = PatchParams::default();
        let health = Patch::Merge(health);
        pins.patch_status("cart-dev", &params, &health)
            .await
            .unwrap();
        // A change of an annotation that no rule reads must not cause a conflict either.
        let note =
            json!({"metadata": {"annotations": {"example.com/seen": count.borrow().to_string()}}});
        let note = Patch::Merge(note);
        pins.patch("cart-dev", &params, &note).await.unwrap();
        count.send_modify(|count| *count += 1);
    }
}

pub async fn a_status_that_flaps_stops_nobody(target: Arc<Target>) {
    let shop = Shop::open(&target, &["cart"]).await;
    let rounds = sized(3, 40);
    // The number of status writes while the user types, at 50 writes per second.
    let typed = sized(10, 100);
    for (title, pace, writers) in [
        ("50 times a second", Some(PACE), 1),
        ("as fast as it goes, by four", None, 4),
    ] {
        let (count, mut counted) = watch::channel(0_usize);
        let mut flapping = tokio::task::JoinSet::new();
        for _ in 0..writers {
            flapping.spawn(flap(target.client_of("controller"), pace, count.clone()));
        }
        let before = shop.pins().get("cart-dev").await.unwrap();
        let mut generation = before.metadata.generation.unwrap();
        let (begun, mut slowest) = (Instant::now(), Duration::ZERO);
        for round in 0..rounds {
            let operation = format!("{title}-{round}").replace(' ', "-");
            let release = ["cart-1", "cart-3"][generation as usize % 2];
            let plan = {
                let feed = shop.feed().await;
                shop.deployment(&feed.world(), release, &operation, "ana")
            };
            let planned = *counted.borrow_and_update();
            let typing = counted.wait_for(|count| *count >= planned + typed);
            tokio::time::timeout(HANG, typing).await.unwrap().unwrap();
            let applying = Instant::now();
            generation += 1;
            assert_eq!(
                done(&shop.client, &plan).await,
                generation,
                "at once, and once"
            );
            slowest = slowest.max(applying.elapsed());
        }
        flapping.shutdown().await;
        let entries = shop.chain("cart-dev").await;
        let pin = shop.pins().get("cart-dev").await.unwrap();
        assert_eq!(pin.metadata.generation, Some(generation));
        println!(
            "{}: status written {title}: {rounds} of {rounds} applied, {} status writes meanwhile ({:.0} a second), slowest apply {} ms; {} entries verify",
            target.name,
            *counted.borrow(),
            *counted.borrow() as f64 / begun.elapsed().as_secs_f64(),
            slowest.as_millis(),
            entries.len(),
        );
    }
}
