//! Runs two controller processes. Only the leader may write, and the other process takes over when the leader
//! stops.

use std::sync::{Arc, Mutex};

use futures::FutureExt;
use tokio::sync::Notify;

use crate::pins::Pins;
use crate::place::Target;
use crate::process::{Process, system_namespace};
use crate::proxy::{Gate, Proxy, Write};
use crate::{HANG, sized};

/// The writes that two controller processes send through their proxies.
#[derive(Default)]
struct Traffic {
    seen: Mutex<Seen>,
    freed: Notify,
}

#[derive(Default)]
struct Seen {
    /// The process that last wrote the lease with success; None at first.
    leader: Option<&'static str>,
    /// The writes of a process that was not the leader. There must be none.
    wrong: Vec<String>,
    /// The number of writes by each process. Writes of the lease do not count.
    writes: std::collections::BTreeMap<&'static str, usize>,
    /// The process that cannot write the lease, because the proxy holds these writes back. None if the proxy
    /// holds back no writes.
    cut: Option<&'static str>,
}

impl Traffic {
    fn gate(self: &Arc<Self>, who: &'static str) -> Gate {
        let traffic = self.clone();
        Arc::new(move |write| {
            let traffic = traffic.clone();
            async move {
                let held = traffic.see(who, &write);
                if held {
                    traffic.freed.notified().await;
                }
                true
            }
            .boxed()
        })
    }

    /// Records a write. Returns whether the proxy must hold the write back.
    fn see(&self, who: &'static str, write: &Write) -> bool {
        let mut seen = self.seen.lock().unwrap();
        if write.resource == "leases" {
            if write.answered && write.succeeded {
                seen.leader = Some(who);
            }
            return !write.answered && seen.cut == Some(who);
        }
        if !write.answered {
            *seen.writes.entry(who).or_default() += 1;
            if seen.leader != Some(who) {
                let leader = seen.leader;
                seen.wrong
                    .push(format!("{who}: {} while {leader:?} leads", write.what));
            }
        }
        false
    }

    fn cut(&self, who: Option<&'static str>) {
        self.seen.lock().unwrap().cut = who;
        self.freed.notify_waiters();
    }

    fn writes(&self, who: &str) -> usize {
        self.seen
            .lock()
            .unwrap()
            .writes
            .get(who)
            .copied()
            .unwrap_or_default()
    }

    fn verify(&self) {
        let seen = self.seen.lock().unwrap();
        assert_eq!(seen.wrong, [""; 0]);
    }
}

pub async fn one_acts_at_a_time(target: Arc<Target>) {
    system_namespace(&target).await;
    let pins = Pins::open(&target, sized(4, 20)).await;
    let traffic = Arc::new(Traffic::default());
    let proxies = [
        Proxy::start(target.client(), traffic.gate("first")).await,
        Proxy::start(target.client(), traffic.gate("second")).await,
    ];
    let flags = |proxy: usize| {
        let mut flags = proxies[proxy].flags(&target);
        // The controllers watch only this namespace, because other tests use ReleasePins in other namespaces.
        flags.push(format!("--namespace={}", target.namespace));
        // The lease is long enough for the leader to keep it on a busy machine.
        flags.push("--lease-duration=5s".to_owned());
        flags
    };
    let first = Process::start(&target, "first", flags(0)).await;
    first.until_it_leads(&target).await;
    let second = Process::start(&target, "second", flags(1)).await;
    pins.agree().await;
    assert_eq!(traffic.writes("second"), 0, "it waits");
    let (code, ready) = second.get("/readyz").await;
    assert_eq!(code, 200, "{ready}");
    assert!(ready.starts_with("ok: waiting: first_"), "{ready}");

    // A leader that cannot renew its lease stops before the other process begins.
    let moving = async {
        for round in 0..sized(2, 6) {
            pins.move_all(["2", "3"][round % 2]).await;
        }
    };
    traffic.cut(Some("first"));
    let taken = second.until_it_leads(&target);
    let (_, taken) = tokio::join!(moving, tokio::time::timeout(HANG, taken));
    taken.expect("the other takes over");
    // The first may have acted on all changes before it lost its lease, so the other gets changes of its own.
    pins.move_all("2").await;
    pins.agree().await;
    traffic.verify();
    let by_second = traffic.writes("second");
    assert!(by_second > 0, "the other acts");
    let (code, why) = first.get("/readyz").await;
    println!(
        "{}: cut off from its lease, the first says {code} {why}",
        target.name
    );

    // When the leader is killed, the other process takes over.
    traffic.cut(None);
    second.kill();
    first.until_it_leads(&target).await;
    pins.move_all("1").await;
    pins.agree().await;
    traffic.verify();

    // A leader that gets the signal TERM releases the lease and exits with 0.
    let third = Process::start(&target, "third", flags(1)).await;
    let ended = first.stop().await;
    assert_eq!(ended.code(), Some(0));
    third.until_it_leads(&target).await;
    traffic.verify();
    pins.verify(|_, _| "1".to_owned()).await;
    println!(
        "{}: two controllers over {} pins: {} writes by the first, {} by the other, none by who did not lead",
        target.name,
        pins.all().count(),
        traffic.writes("first"),
        traffic.writes("second"),
    );
}
