//! Tests that the controllers write nothing if nothing changed.

use std::sync::{Arc, Mutex};

use futures::FutureExt;

use crate::pins::Pins;
use crate::place::Target;
use crate::process::{Process, system_namespace};
use crate::proxy::{Gate, Proxy};
use crate::sized;

pub async fn a_second_look_writes_nothing(target: Arc<Target>) {
    system_namespace(&target).await;
    let pins = Pins::open(&target, sized(4, 40)).await;
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let gate: Gate = {
        let seen = seen.clone();
        Arc::new(move |write| {
            // Counts only successful writes: the creation of an existing namespace fails with a conflict.
            if write.succeeded && write.resource != "leases" {
                seen.lock().unwrap().push(write.what);
            }
            async { true }.boxed()
        })
    };
    let proxy = Proxy::start(target.client(), gate).await;
    let mut flags = proxy.flags(&target);
    flags.push(format!("--namespace={}", target.namespace));
    let first = Process::start(&target, "first", flags.clone()).await;
    pins.agree().await;
    let count = pins.all().count() as u64;
    until_reconciled(&first, count).await;
    assert_eq!(first.stop().await.code(), Some(0));
    let written = std::mem::take(&mut *seen.lock().unwrap()).len();
    // A restarted process reads everything again, and must write nothing.
    let second = Process::start(&target, "second", flags).await;
    second.until_it_leads(&target).await;
    until_reconciled(&second, count).await;
    assert_eq!(second.stop().await.code(), Some(0));
    let again = std::mem::take(&mut *seen.lock().unwrap());
    assert_eq!(again, [""; 0]);
    println!(
        "{}: {count} pins: {written} writes, and none on the second look",
        target.name
    );
}

/// Waits until the metrics show `count` reconciles, so that every ReleasePin and every RenderedRelease was
/// reconciled.
async fn until_reconciled(process: &Process, count: u64) {
    let reached = async {
        loop {
            let (_, text) = process.get("/metrics").await;
            let counted = |controller: &str| -> u64 {
                let own = format!(
                    "bowline_reconciles_total{{controller=\"{controller}\",result=\"success\"}} "
                );
                let line = text.lines().find_map(|line| line.strip_prefix(&own));
                line.map_or(0, |count| count.parse().unwrap())
            };
            if counted("pin") >= count && counted("renderedrelease") >= count {
                return;
            }
        }
    };
    let reached = tokio::time::timeout(crate::HANG, reached).await;
    reached.unwrap_or_else(|_| panic!("not everything is looked at: {}", process.log()));
}
