//! The table row of a Pod. Its status word summarizes the states of the containers.

use serde_json::{Value, json};

use super::age;
use super::cells::{NONE, at, is_true, items, number, text, text_or};

/// Returns the table cells of a Pod.
pub(super) fn cells(pod: &Value, now: &str) -> Vec<Value> {
    let summary = Summary::of(pod);
    let restarts = match (summary.restarts, &summary.last_restart) {
        (0, _) | (_, None) => summary.restarts.to_string(),
        (restarts, Some(last)) => {
            let ago = age::since(&Value::from(last.as_str()), now);
            format!("{restarts} ({ago} ago)")
        }
    };
    vec![
        at(pod, "/metadata/name").clone(),
        format!("{}/{}", summary.ready, summary.containers).into(),
        summary.word.into(),
        restarts.into(),
        age::since(at(pod, "/metadata/creationTimestamp"), now).into(),
        text_or(pod, "/status/podIPs/0/ip", NONE).into(),
        text_or(pod, "/spec/nodeName", NONE).into(),
        text_or(pod, "/status/nominatedNodeName", NONE).into(),
        gates(pod).into(),
    ]
}

/// Returns the condition of a finished pod's table row, so that clients can hide the row; null for other pods.
pub(super) fn conditions(pod: &Value) -> Value {
    let message = match text(pod, "/status/phase") {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return Value::Null,
    };
    json!([{
        "type": "Completed",
        "status": "True",
        "reason": at(pod, "/status/phase"),
        "message": message,
    }])
}

fn gates(pod: &Value) -> String {
    let gates = items(pod, "/spec/readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let open = gates
        .iter()
        .filter(|gate| is_true(pod, text(gate, "/conditionType")))
        .count();
    format!("{open}/{}", gates.len())
}

/// The number of containers and restarts of a pod, and the word for its status.
#[derive(Default)]
struct Summary {
    word: String,
    ready: usize,
    containers: usize,
    restarts: i64,
    last_restart: Option<String>,
}

impl Summary {
    fn of(pod: &Value) -> Summary {
        let mut summary = Summary {
            word: text_or(pod, "/status/reason", text(pod, "/status/phase")).to_owned(),
            containers: items(pod, "/spec/containers").len()
                + items(pod, "/spec/initContainers")
                    .iter()
                    .filter(|container| is_sidecar(container))
                    .count(),
            ..Summary::default()
        };
        let gated = items(pod, "/status/conditions").iter().any(|condition| {
            text(condition, "/type") == "PodScheduled"
                && text(condition, "/reason") == "SchedulingGated"
        });
        if gated {
            summary.word = "SchedulingGated".to_owned();
        }
        let initializing = summary.count_init(pod);
        if !initializing || is_true(pod, "Initialized") {
            summary.count_main(pod);
        }
        if !at(pod, "/metadata/deletionTimestamp").is_null() {
            let over = matches!(text(pod, "/status/phase"), "Succeeded" | "Failed");
            if text(pod, "/status/reason") == "NodeLost" {
                summary.word = "Unknown".to_owned();
            } else if !over {
                summary.word = "Terminating".to_owned();
            }
        }
        summary
    }

    /// Counts the restarts of the init containers, up to the first that has not finished. Returns whether there is
    /// one.
    fn count_init(&mut self, pod: &Value) -> bool {
        let declared = items(pod, "/spec/initContainers");
        for (position, status) in items(pod, "/status/initContainerStatuses")
            .iter()
            .enumerate()
        {
            self.count_restarts(status);
            let sidecar = declared.iter().any(|container| {
                text(container, "/name") == text(status, "/name") && is_sidecar(container)
            });
            let ended = at(status, "/state/terminated");
            let waits = text(status, "/state/waiting/reason");
            if ended.is_object() && number(ended, "/exitCode") == 0 {
                continue;
            }
            if sidecar && at(status, "/started") == true {
                self.ready += usize::from(at(status, "/ready") == true);
                continue;
            }
            let why = if ended.is_object() {
                exit_word(ended)
            } else if !waits.is_empty() && waits != "PodInitializing" {
                waits.to_owned()
            } else {
                format!("{position}/{}", declared.len())
            };
            self.word = format!("Init:{why}");
            return true;
        }
        false
    }

    fn count_main(&mut self, pod: &Value) {
        self.restarts = 0;
        self.last_restart = None;
        // The init containers have finished, so only the restarts of sidecars and main containers are counted.
        let declared = items(pod, "/spec/initContainers");
        for status in items(pod, "/status/initContainerStatuses") {
            let sidecar = declared.iter().any(|container| {
                text(container, "/name") == text(status, "/name") && is_sidecar(container)
            });
            if sidecar {
                self.count_restarts(status);
            }
        }
        let mut running = false;
        let mut failure = None;
        for status in items(pod, "/status/containerStatuses").iter().rev() {
            self.count_restarts(status);
            let waits = text(status, "/state/waiting/reason");
            let ended = at(status, "/state/terminated");
            if !waits.is_empty() {
                self.word = waits.to_owned();
            } else if ended.is_object() {
                self.word = exit_word(ended);
                if number(ended, "/exitCode") != 0 {
                    failure = Some(self.word.clone());
                }
            } else if at(status, "/ready") == true && at(status, "/state/running").is_object() {
                running = true;
                self.ready += 1;
            }
        }
        // A completed container does not determine the status word, because other containers are still running.
        if self.word == "Completed" {
            if running && is_true(pod, "Ready") {
                self.word = "Running".to_owned();
            } else if let Some(failure) = failure {
                self.word = failure;
            } else if running {
                self.word = "NotReady".to_owned();
            }
        }
    }

    fn count_restarts(&mut self, status: &Value) {
        let restarts = number(status, "/restartCount");
        self.restarts = self.restarts.saturating_add(restarts);
        let ended = text(status, "/lastState/terminated/finishedAt");
        if !ended.is_empty() && self.last_restart.as_deref().unwrap_or_default() < ended {
            self.last_restart = Some(ended.to_owned());
        }
    }
}

fn is_sidecar(container: &Value) -> bool {
    text(container, "/restartPolicy") == "Always"
}

fn exit_word(ended: &Value) -> String {
    match (text(ended, "/reason"), number(ended, "/signal")) {
        ("", 0) => format!("ExitCode:{}", number(ended, "/exitCode")),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
