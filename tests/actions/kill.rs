//! Kills bowline (kill -9) at every write of an action. A second run completes the action without doing a
//! write twice.

use std::io::{BufRead, BufReader, Read};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bowline::api::ReleasePin;
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use tokio::sync::Notify;

use crate::place::Target;
use crate::proxy::{Gate, Proxy, Write};
use crate::shop::Shop;
use crate::user::{User, ended};
use crate::{HANG, sized};

/// A command line to kill, with its preparation (`before`) and the check after a second run (`holds`). The
/// check gets the ReleasePin from before the command.
struct Row {
    title: &'static str,
    before: fn(&Shop) -> BoxFuture<'_, ()>,
    line: &'static str,
    holds: fn(&Shop, Option<ReleasePin>) -> BoxFuture<'_, ()>,
}

const ROWS: [Row; 4] = [
    Row {
        title: "promote",
        before: |shop| set(shop, "cart-1").boxed(),
        line: "promote cart --from staging --to prod --unready --yes",
        holds: |shop, before| moved_once(shop, before, "cart-2", 0).boxed(),
    },
    Row {
        title: "promote to where nothing runs",
        before: |shop| remove(shop).boxed(),
        line: "promote cart --from staging --to prod --unready --yes",
        holds: |shop, before| moved_once(shop, before, "cart-2", 0).boxed(),
    },
    Row {
        title: "rollback",
        before: |shop| set(shop, "cart-2").boxed(),
        line: "rollback cart -e prod --to cart-1 --reason INC-7 --yes",
        holds: |shop, before| moved_once(shop, before, "cart-1", 1).boxed(),
    },
    Row {
        title: "gc",
        before: |shop| unused(shop).boxed(),
        line: "gc cart --keep 0 --min-age 0s --confirm",
        holds: |shop, _| collected(shop).boxed(),
    },
];

/// Checks that the command changed the ReleasePin in prod exactly once, to this release. Also checks the
/// number of holds.
async fn moved_once(shop: &Shop, before: Option<ReleasePin>, release: &str, holds: usize) {
    let after = shop.pins().get("cart-prod").await.unwrap();
    assert_eq!(after.spec.effective_release(Timestamp::now()), release);
    assert_eq!(after.spec.holds.len(), holds);
    let before = before.and_then(|pin| pin.metadata.generation);
    let expected = before.unwrap_or_default() + 1;
    assert_eq!(
        after.metadata.generation,
        Some(expected),
        "once, and only once"
    );
}

/// Creates releases that no ReleasePin names.
async fn unused(shop: &Shop) {
    for version in ["8", "9"] {
        let name = format!("cart-{version}");
        if shop
            .releases()
            .get_metadata_opt(&name)
            .await
            .unwrap()
            .is_none()
        {
            shop.release("cart", version, &name).await;
        }
    }
}

/// Checks that the unused releases are deleted, and that the release of each ReleasePin exists.
async fn collected(shop: &Shop) {
    for (name, stays) in [
        ("cart-1", true),
        ("cart-2", true),
        ("cart-8", false),
        ("cart-9", false),
    ] {
        let found = shop.releases().get_metadata_opt(name).await.unwrap();
        assert_eq!(found.is_some(), stays, "{name}");
    }
}

/// Sets the release of the ReleasePin in prod and removes its holds, as a user does with kubectl.
async fn set(shop: &Shop, release: &str) {
    if shop.pins().get_opt("cart-prod").await.unwrap().is_none() {
        shop.pin("cart", "prod", release).await;
    }
    let spec = json!({"spec": {"releaseRef": {"name": release}, "holds": null}});
    let params = PatchParams::default();
    let patch = Patch::Merge(spec);
    shop.pins()
        .patch("cart-prod", &params, &patch)
        .await
        .unwrap();
}

async fn remove(shop: &Shop) {
    let params = DeleteParams::default();
    shop.pins().delete("cart-prod", &params).await.unwrap();
}

/// The write at which a run stops: the number of the write, and whether the API has answered it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    write: usize,
    answered: bool,
}

/// Counts the writes of a run, and stops the run at one of the writes.
#[derive(Default)]
struct Holder {
    seen: Mutex<Seen>,
    held: Notify,
    released: Notify,
}

#[derive(Default)]
struct Seen {
    writes: Vec<Write>,
    hold: Option<Step>,
}

impl Holder {
    fn gate(self: &Arc<Self>) -> Gate {
        let holder = self.clone();
        Arc::new(move |write| {
            let holder = holder.clone();
            async move {
                if holder.see(write) {
                    holder.held.notify_one();
                    holder.released.notified().await;
                }
                true
            }
            .boxed()
        })
    }

    /// Counts a write. Returns whether the run stops at this write.
    fn see(&self, write: Write) -> bool {
        let mut seen = self.seen.lock().unwrap();
        let (id, answered) = (write.id, write.answered);
        if !answered {
            seen.writes.push(write);
        }
        let place = seen.writes.iter().position(|write| write.id == id);
        place.is_some_and(|write| seen.hold == Some(Step { write, answered }))
    }

    /// Starts to count the writes at 0. Returns the writes since the last call.
    fn begin(&self, hold: Option<Step>) -> Vec<Write> {
        let new = Seen {
            writes: Vec::new(),
            hold,
        };
        std::mem::replace(&mut *self.seen.lock().unwrap(), new).writes
    }
}

pub async fn a_second_run_finishes_what_was_killed(target: Arc<Target>) {
    let shop = Shop::open(&target, &["cart"]).await;
    shop.pin("cart", "staging", "cart-2").await;
    let holder = Arc::new(Holder::default());
    let proxy = Proxy::start(shop.client.clone(), holder.gate()).await;
    let user = User::with(&target, proxy.flags(&target));
    let direct = User::of(&target);
    let (mut kills, mut finished, mut reported) = (0, 0, 0);
    let begun = Instant::now();
    for _ in 0..sized(1, 5) {
        for row in ROWS {
            // The second of these complete runs shows the writes of the command. The first one creates the
            // state that every later run finds.
            let mut writes = Vec::new();
            for _ in 0..2 {
                (row.before)(&shop).await;
                holder.begin(None);
                user.done(row.line).await;
                writes = holder.begin(None);
            }
            let steps = (0..writes.len())
                .flat_map(|write| [false, true].map(|answered| Step { write, answered }));
            for step in steps {
                (row.before)(&shop).await;
                let before = shop.pins().get_opt("cart-prod").await.unwrap();
                kill_at(&holder, &user, row.line, step).await;
                kills += 1;
                let (out, _) = user.done(row.line).await;
                match out.contains(" (revision ") {
                    true => finished += 1,
                    false => reported += 1,
                }
                (row.holds)(&shop, before).await;
                let verified = direct.run("audit verify").await;
                let place = &writes[step.write].resource;
                let title = row.title;
                assert_eq!(
                    verified.code, 0,
                    "{title}: {step:?} ({place}): {}",
                    verified.err
                );
                assert!(!verified.err.contains("warning"), "{}", verified.err);
            }
        }
    }
    println!(
        "{}: kill -9 at {kills} steps of {}: the second run moved the pin {finished} times and {reported} times found it moved, or collected the rest; one move each, audit verify: valid without gaps; in {:.1} s",
        target.name,
        ROWS.map(|row| row.title).join(", "),
        begun.elapsed().as_secs_f64(),
    );
}

/// Starts a command line, and kills the program at a step.
async fn kill_at(holder: &Arc<Holder>, user: &User, line: &str, step: Step) {
    holder.begin(Some(step));
    let mut run = user.start(line);
    let held = tokio::time::timeout(HANG, holder.held.notified()).await;
    run.kill().unwrap();
    let ran = ended(run).await;
    assert!(
        held.is_ok(),
        "{line} does not come to {step:?}: {}",
        ran.err
    );
    assert_eq!(ran.code, -1, "killed");
    holder.begin(None);
}

/// An interrupt arrives during the second change of a promotion of three components. bowline completes that
/// change, and does not start the third one.
pub async fn an_interrupt_ends_a_set_between_two_changes(target: Arc<Target>) {
    let shop = Shop::open(&target, &["a", "b", "c"]).await;
    let holder = Arc::new(Holder::default());
    let proxy = Proxy::start(shop.client.clone(), holder.gate()).await;
    let user = User::with(&target, proxy.flags(&target));
    // Each change writes a claim, a ReleasePin and an audit entry. So write number 4 (from 0) is the
    // ReleasePin of b.
    holder.begin(Some(Step {
        write: 4,
        answered: false,
    }));
    let line = "promote a b c --from dev --to staging --unready";
    let mut run = user.start(line);
    let held = tokio::time::timeout(HANG, holder.held.notified()).await;
    held.expect("the set comes to its second change");
    let interrupted = Command::new("kill")
        .args(["-INT", &run.id().to_string()])
        .status();
    assert!(interrupted.unwrap().success());
    let mut said = BufReader::new(run.stderr.take().unwrap());
    let said = tokio::task::spawn_blocking(move || {
        let mut first = String::new();
        said.read_line(&mut first).unwrap();
        (first, said)
    });
    let (first, mut rest) = said.await.unwrap();
    assert_eq!(
        first,
        "interrupted: bowline finishes the current write, then stops\n"
    );
    holder.released.notify_one();
    let mut said = String::new();
    let ran = ended(run).await;
    rest.read_to_string(&mut said).unwrap();
    assert_eq!(ran.code, 1, "{said}");
    assert_eq!(
        ran.out,
        "a in staging: nothing -> a-2 (revision 1)\nb in staging: nothing -> b-2 (revision 1)\n"
    );
    assert_eq!(
        said,
        "error: c-staging: not started: the set was aborted before this change\n"
    );
    assert!(shop.pins().get_opt("c-staging").await.unwrap().is_none());
    // A second run makes the change that is left.
    let (out, _) = user.done(line).await;
    assert!(
        out.ends_with("c in staging: nothing -> c-2 (revision 1)\n"),
        "{out}"
    );
    User::of(&target).run("audit verify").await;
    println!(
        "{}: an interrupt ended a set of 3 after 2: exit code 1",
        target.name
    );
}
