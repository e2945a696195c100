//! Controllers that end when they should not, and one that should.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{mpsc, oneshot};

use super::*;
use crate::connect::{Deadlines, guard};
use crate::embedded::Embedded;
use crate::resolve::git::{Git, Settings};

#[tokio::test]
async fn a_controller_that_ends_is_started_again_until_the_stop() {
    let folder = tempfile::tempdir().unwrap();
    let store = Embedded::open(&folder.path().join("store.db"), "ana").await;
    let context = Arc::new(Context::new(
        guard(store.unwrap(), "default", None, Deadlines::default()),
        None,
        Arc::new(jiff::Timestamp::now),
        Git::new(Settings::new(folder.path().join("git"))),
        Arc::default(),
    ));
    let (told, mut runs) = mpsc::unbounded_channel();
    let times = Arc::new(AtomicUsize::new(0));
    let restless = Loop::new("restless", move |_, stop: Stop| {
        let (told, time) = (told.clone(), times.fetch_add(1, Ordering::SeqCst));
        async move {
            told.send(time).unwrap();
            match time {
                0 => panic!("a fault"),
                1 => {}
                _ => stop.await,
            }
        }
    });
    let (stopping, stopped) = oneshot::channel::<()>();
    let stop = stop(async {
        let _ = stopped.await;
    });
    tokio::time::pause();
    let running = run(vec![restless], &context, stop);
    let watching = async {
        for expected in 0..3 {
            assert_eq!(runs.recv().await, Some(expected));
        }
        drop(stopping);
    };
    tokio::join!(running, watching);
    let text = context.metrics.text();
    let line = r#"bowline_controller_restarts_total{controller="restless"} 2"#;
    assert!(text.contains(line), "{text}");
}
