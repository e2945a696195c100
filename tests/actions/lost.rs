//! The network loses the answer to one write of an action. The tests repeat this for each write of the
//! action.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use futures::FutureExt;

use crate::place::Target;
use crate::proxy::{Gate, Proxy};
use crate::shop::{Shop, done};
use crate::sized;
use crate::user::User;

/// The resources that an action writes: the release (with a claim), the ReleasePin, the audit entry.
const WRITES: [&str; 3] = ["releases", "releasepins", "auditentries"];

pub async fn answers_that_are_lost_change_nothing(target: Arc<Target>) {
    let shop = Shop::open(&target, &["cart"]).await;
    // The number of the write that loses its answer. It is `usize::MAX` when the answer is lost.
    let armed = Arc::new(AtomicUsize::new(usize::MAX));
    let lost = Arc::new(AtomicUsize::new(0));
    let gate: Gate = {
        let (armed, lost) = (armed.clone(), lost.clone());
        Arc::new(move |write| {
            let loses = write.answered
                && WRITES.get(armed.load(Ordering::SeqCst)) == Some(&write.resource.as_str());
            if loses {
                armed.store(usize::MAX, Ordering::SeqCst);
                lost.fetch_add(1, Ordering::SeqCst);
            }
            async move { !loses }.boxed()
        })
    };
    let proxy = Proxy::start(shop.client.clone(), gate).await;
    let client = proxy.client(&target);
    let actions = sized(30, 1000);
    let mut feed = shop.feed().await;
    let begun = Instant::now();
    for action in 0..actions {
        let release = ["cart-1", "cart-2", "cart-3"][(action + 2) % 3];
        let generation = action as i64 + 2;
        let operation = format!("action-{action}");
        let plan = shop.deployment(&feed.world(), release, &operation, "ana");
        armed.store(action % WRITES.len(), Ordering::SeqCst);
        assert_eq!(done(&client, &plan).await, generation, "{operation}");
        let key = plan.changes[0].key().clone();
        feed.until(|world| {
            world
                .pin(&key)
                .is_some_and(|pin| pin.generation == generation)
        })
        .await;
    }
    assert_eq!(lost.load(Ordering::SeqCst), actions, "each lost one answer");
    let entries = shop.chain("cart-dev").await;
    assert_eq!(entries.len(), actions + 1);
    for (action, entry) in entries.iter().skip(1).enumerate() {
        assert_eq!(entry.spec.operation, Some(format!("action-{action}")));
    }
    User::of(&target).done("audit verify").await;
    println!(
        "{}: {actions} actions, each lost the answer to its claim, its pin or its entry: one revision and one entry each, none reported failed, in {:.1} s; audit verify: valid",
        target.name,
        begun.elapsed().as_secs_f64(),
    );
}
