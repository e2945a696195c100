//! All controllers, and how they are run together.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use tokio::task::JoinSet;

use super::rendered::{self, Ways};
use super::{Context, component, pin, pipeline, release, retention};
use crate::connect::DataPlanes;

/// Becomes ready when the controllers are to end: nothing new is begun, what is under way ends.
pub type Stop = Shared<BoxFuture<'static, ()>>;

/// How long a controller that ended by a fault waits before it is started again.
const PAUSE: Duration = Duration::from_secs(1);

type Run = Arc<dyn Fn(Arc<Context>, Stop) -> BoxFuture<'static, ()> + Send + Sync>;

/// One controller.
#[derive(Clone)]
pub struct Loop {
    name: &'static str,
    run: Run,
}

impl Loop {
    /// Names a controller, and says how it is run until it is told to stop.
    pub fn new<F>(
        name: &'static str,
        run: impl Fn(Arc<Context>, Stop) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self {
            name,
            run: Arc::new(move |context, stop| run(context, stop).boxed()),
        }
    }
}

impl fmt::Debug for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Loop").field(&self.name).finish()
    }
}

/// Returns the controllers, in no order: each waits for what it needs.
pub fn all(planes: DataPlanes) -> Vec<Loop> {
    vec![
        Loop::new("pin", pin::run),
        Loop::new("component", component::run),
        Loop::new("pipeline", pipeline::run),
        Loop::new("release", release::run),
        Loop::new("retention", retention::run),
        Loop::new("renderedrelease", move |context, stop| {
            rendered::run(context, Ways::new(planes.clone()), stop)
        }),
    ]
}

/// Turns whatever ends the controllers into what each of them is given.
pub fn stop(when: impl Future<Output = ()> + Send + 'static) -> Stop {
    when.boxed().shared()
}

/// Runs controllers until they were told to stop and what was under way has ended. Dropping this ends them
/// at once.
pub async fn run(loops: Vec<Loop>, context: &Arc<Context>, stop: Stop) {
    let mut running = JoinSet::new();
    for each in loops {
        running.spawn(keep_running(each, context.clone(), stop.clone()));
    }
    while running.join_next().await.is_some() {}
    stop.await;
}

/// Runs one controller, again where it ended unasked: a fault in one must not silence it for ever.
async fn keep_running(each: Loop, context: Arc<Context>, stop: Stop) {
    loop {
        let run = AssertUnwindSafe((each.run)(context.clone(), stop.clone())).catch_unwind();
        let ended = run.await;
        if stop.peek().is_some() {
            return;
        }
        let how = if ended.is_err() { "a fault" } else { "itself" };
        tracing::error!(controller = each.name, "ended with {how}; restarting");
        context.metrics.restarted(each.name);
        tokio::select! {
            () = stop.clone() => return,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

#[cfg(test)]
mod tests;
