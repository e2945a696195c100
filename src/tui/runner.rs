//! Performs effects in the background. Each effect runs as one task, and the answer to it returns as an event.

mod commits;
mod compare;
mod describe;
mod history;
mod places;
mod record;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures::future::join_all;
use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;

use super::effect::{Answer, Effect, Planned, Previews, Refused, Ticket};
use super::model::Event;
use crate::api::bowline::audit::AuditEntry;
use crate::connect::kinds::kind;
use crate::connect::{Address, Connection, DataPlanes, explain};
use crate::engine::diff;
use crate::engine::plan::Asked;
use crate::engine::rights::{self, Right};
use crate::engine::subject::Kind;
use crate::engine::subject::command::SubjectError;
use crate::engine::whoami::{self, Whoami};
use crate::engine::world::feed::Feed;
use crate::resolve::git::Git;
use crate::subjects;
use crate::subjects::release_pin::planner::NotPlanned;
use crate::subjects::release_pin::rules::Refusal;
use crate::subjects::service::{self, Command, Confirmed, NotApplied, PlannedCommand, Service};

pub use commits::look;

/// The first pause between two requests for the user name.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause between two requests for the user name.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A connected target on which the runner performs effects.
pub struct Session {
    pub connection: Connection,
    /// The read model of the target, which the watches keep current.
    pub feed: Feed,
    pub git: Git,
    /// The connections to the data planes of the target.
    pub planes: DataPlanes,
    /// The user name, and the offset of the server's clock from the local clock. The user name is empty until the
    /// server answers.
    pub who: RwLock<Whoami>,
}

impl Session {
    /// Starts to watch a target. If a release has a git reference to the repository of the target, bowline reads the
    /// work tree instead of fetching.
    pub fn start(connection: Connection, git: Git, planes: DataPlanes) -> Self {
        Self {
            feed: subjects::watch_matrix(&connection.client, Some(&connection.namespace)),
            git: git.beside(connection.work_tree()),
            connection,
            planes,
            who: RwLock::new(Whoami {
                user: String::new(),
                ahead: SignedDuration::ZERO,
            }),
        }
    }

    fn who(&self) -> Whoami {
        self.who
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Returns the current time, according to the server's clock.
    pub fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        now.checked_add(self.who().ahead).unwrap_or(now)
    }

    fn service(&self) -> Service<'_> {
        Service {
            connection: &self.connection,
            feed: &self.feed,
            git: &self.git,
        }
    }

    fn asked(&self, operation: String) -> Asked {
        Asked {
            operation,
            now: self.now(),
            user: self.who().user,
            reason: None,
            namespace: self.connection.namespace.clone(),
        }
    }
}

/// Performs effects on one target. Dropping the runner stops the tasks that only read.
pub struct Runner {
    session: Arc<Session>,
    events: UnboundedSender<Event>,
    running: HashMap<Ticket, Running>,
}

struct Running {
    task: JoinHandle<()>,
    writes: bool,
    /// A flag that tells the task to stop before it writes the next object.
    abort: Arc<AtomicBool>,
}

impl Drop for Runner {
    fn drop(&mut self) {
        // A task that writes continues to its end, but its answer is lost.
        for running in self.running.values().filter(|running| !running.writes) {
            running.task.abort();
        }
    }
}

impl Runner {
    /// Returns a runner that sends the answers to `events`.
    pub fn new(session: Arc<Session>, events: UnboundedSender<Event>) -> Self {
        Self {
            session,
            events,
            running: HashMap::new(),
        }
    }

    pub fn is_busy(&mut self) -> bool {
        self.running
            .retain(|_, running| !running.task.is_finished());
        !self.running.is_empty()
    }

    /// Starts to perform an effect. Returns the effect if it concerns the terminal or the connection, because then
    /// the caller has to perform it.
    pub fn run(&mut self, effect: Effect) -> Option<Effect> {
        self.running
            .retain(|_, running| !running.task.is_finished());
        let session = self.session.clone();
        match effect {
            Effect::Plan(ticket, command) => {
                let events = self.events.clone();
                self.begin(ticket, None, async move {
                    plan(&session, ticket, *command, &events).await;
                    None
                });
            }
            Effect::Apply(ticket, confirmed) => {
                let abort = Arc::new(AtomicBool::new(false));
                let (flag, events) = (abort.clone(), self.events.clone());
                self.begin(ticket, Some(abort), async move {
                    let applied = apply(&session, *confirmed, &flag).await;
                    commits::tell(&session, &events).await;
                    Some(Answer::Applied(applied))
                });
            }
            Effect::Push(ticket, remote) => {
                let events = self.events.clone();
                self.begin(ticket, Some(Arc::default()), async move {
                    let pushed = commits::push(&session, remote.as_deref()).await;
                    commits::tell(&session, &events).await;
                    Some(Answer::Pushed(pushed))
                });
            }
            Effect::Cancel(ticket) => match self.running.get(&ticket) {
                Some(running) if running.writes => running.abort.store(true, Ordering::SeqCst),
                Some(running) => running.task.abort(),
                None => {}
            },
            Effect::Rights(ticket, environments) => self.begin(ticket, None, async move {
                Some(Answer::Rights(rights(&session, environments).await))
            }),
            Effect::Record(ticket) => self.begin(ticket, None, async move {
                Some(Answer::Record(record::record(&session).await))
            }),
            Effect::Namespaces(ticket) => self.begin(ticket, None, async move {
                Some(Answer::Namespaces(places::namespaces(&session).await))
            }),
            Effect::Describe(ticket, object) => self.begin(ticket, None, async move {
                let described = describe::describe(&session, &object).await;
                Some(Answer::Described(described))
            }),
            Effect::Export(ticket, path, text) => self.begin(ticket, None, async move {
                let written = tokio::task::spawn_blocking(move || record::export(&path, &text));
                let written = written.await.map_err(|error| error.to_string());
                Some(Answer::Exported(written.and_then(|written| written)))
            }),
            Effect::Arm(lasting) => {
                session.connection.arm(lasting);
            }
            Effect::Revisions(ticket, place) => self.begin(ticket, None, async move {
                let found = history::revisions(&session, &place).await;
                Some(Answer::Revisions(found.map(Box::new)))
            }),
            Effect::Compare(ticket, comparison) => self.begin(ticket, None, async move {
                let found = compare::compare(&session, *comparison).await;
                Some(Answer::Compared(found.map(Box::new)))
            }),
            other @ (Effect::Quit
            | Effect::Suspend
            | Effect::Redraw
            | Effect::Copy(_)
            | Effect::Theme(_)
            | Effect::Connect(..)
            | Effect::Switch) => return Some(other),
        }
        None
    }

    /// Starts a task. For a task that writes, pass `abort`: when this flag is set, the task stops before the next
    /// object. For a task that only reads, pass None.
    fn begin(
        &mut self,
        ticket: Ticket,
        abort: Option<Arc<AtomicBool>>,
        work: impl Future<Output = Option<Answer>> + Send + 'static,
    ) {
        let events = self.events.clone();
        let task = tokio::spawn(async move {
            if let Some(answer) = work.await {
                // The receiver is closed only if the program ends, so nobody needs the answer then.
                let _ = events.send(Event::Answer(ticket, answer));
            }
        });
        let running = Running {
            task,
            writes: abort.is_some(),
            abort: abort.unwrap_or_default(),
        };
        self.running.insert(ticket, running);
    }
}

/// Makes a plan and sends it as an answer. Then computes the diffs that the plan causes, and sends them too.
async fn plan(
    session: &Session,
    ticket: Ticket,
    command: Command,
    events: &UnboundedSender<Event>,
) {
    let tell = |answer| {
        let _ = events.send(Event::Answer(ticket, answer));
    };
    // bowline writes the audit entry after the change, so check first that the cluster has the kind of audit entries.
    // Changes of workloads need no audit entries.
    let needed: &[_] = if command.is_named() {
        &[]
    } else {
        &[kind::<AuditEntry>()]
    };
    if let Err(error) = session.connection.require(needed).await {
        return tell(Answer::Planned(Err(Refused {
            hints: error.hints(),
            why: vec![error.to_string()],
            ..Refused::default()
        })));
    }
    let cleared = match commits::begin(session, &command).await {
        Ok(cleared) => cleared,
        Err(refused) => return tell(Answer::Planned(Err(refused))),
    };
    // The user may press a key before all lists that the plan needs are loaded.
    session.feed.listed(command.reads()).await;
    let operation = uuid::Uuid::new_v4().to_string();
    let asked = session.asked(operation);
    let service = session.service();
    let planned = service.plan(&command, &asked).await;
    let prepared = match planned.map_err(|error| refused(error, session)) {
        Ok(prepared) => prepared,
        Err(refused) => return tell(Answer::Planned(Err(refused))),
    };
    let files = match service.files(&prepared).await {
        Ok(files) => files,
        Err(error) => return tell(Answer::Planned(Err(error.into()))),
    };
    let files = files.map(|mut files| {
        files.warnings.splice(0..0, cleared);
        Arc::new(files)
    });
    tell(Answer::Planned(Ok(Box::new(Planned {
        prepared: Box::new(prepared.clone()),
        files,
    }))));
    let PlannedCommand::Changes(mut action_plan) = prepared else {
        return;
    };
    let options = diff::Options {
        context: diff::WHOLE,
        ..diff::Options::default()
    };
    let shown = service.show(&mut action_plan, &options).await;
    tell(Answer::Shown(match shown {
        Ok(diffs) => Ok(Previews {
            prepared: Box::new(PlannedCommand::Changes(action_plan)),
            diffs,
        }),
        Err(error) => Err(error.to_string()),
    }));
}

/// Converts the error of a plan to the reasons and hints that the screen shows.
fn refused(error: NotPlanned, session: &Session) -> Refused {
    match error {
        NotPlanned::Refused(refusals) => Refused {
            why: refusals.iter().map(ToString::to_string).collect(),
            chooses_revision: refusals.iter().all(Refusal::is_about_last_good),
            refusals,
            ..Refused::default()
        },
        NotPlanned::Target(error) => explain(&error).into(),
        NotPlanned::Reference(error) => Refused {
            why: vec![error.to_string()],
            hints: vec![error.hint("", &Address::of_repository(&session.connection))],
            ..Refused::default()
        },
        NotPlanned::Subject(error) => {
            let why = vec![error.to_string()];
            let hints = match error {
                SubjectError::Refused { hint, .. } => hint.into_iter().collect(),
                _ => Vec::new(),
            };
            Refused {
                why,
                hints,
                ..Refused::default()
            }
        }
        error => error.to_string().into(),
    }
}

async fn apply(
    session: &Session,
    mut confirmed: Confirmed,
    abort: &AtomicBool,
) -> Result<service::Outcome, Refused> {
    let clock = || session.now();
    let user = session.who().user;
    let service = session.service();
    let applied = service.apply(&mut confirmed, &user, &clock, abort).await;
    applied.map_err(|error| match error {
        NotApplied::NotCommitted(error) => error.into(),
        NotApplied::NotPlanned(error) => error.to_string().into(),
    })
}

/// Asks the server's authorizer in which environments the user is allowed to change ReleasePins. If the request for
/// an environment failed, the result has no entry for it.
async fn rights(
    session: &Session,
    environments: Vec<String>,
) -> BTreeMap<String, Result<(), String>> {
    let connection = &session.connection;
    let promote = Right {
        verb: "promote",
        resource: kind::<crate::api::Environment>,
    };
    let ask = |environment: String| async move {
        let question = promote.on(&connection.namespace, Some(&environment));
        let answer = rights::ask(&connection.client, question).await?;
        let right = answer.map_err(|lacking| {
            lacking.why.unwrap_or_else(|| {
                "no role grants you the verb promote on this environment".to_owned()
            })
        });
        Some((environment, right))
    };
    let answers = join_all(environments.into_iter().map(ask)).await;
    answers.into_iter().flatten().collect()
}

/// Asks which kinds of workloads the user may not change in the namespace of the session. The result has the
/// reason for each of these kinds.
async fn lacking(session: &Session) -> BTreeMap<&'static str, String> {
    let connection = &session.connection;
    let kinds = subjects::kinds().filter(|kind| {
        let group = (kind.resource)().group;
        connection.target.stores(&group)
    });
    let ask = |kind: &'static Kind| async move {
        let needed = kind.actions.as_ref()?.rights.iter();
        let questions = needed.map(|right| right.on(&connection.namespace, None));
        let lacking = rights::lacking(&connection.client, questions).await?;
        Some((kind.name, lacking.to_string()))
    };
    let answers = join_all(kinds.map(ask)).await;
    answers.into_iter().flatten().collect()
}

/// Requests the user name until the server answers, and sends the name to the model. Also starts to report the state
/// of the work tree, if the target has one. Abort the returned task to stop the requests.
pub fn introduce(session: &Arc<Session>, events: &UnboundedSender<Event>) -> JoinHandle<()> {
    commits::follow(session, events);
    let (session, events) = (session.clone(), events.clone());
    tokio::spawn(async move {
        let mut pause = FIRST_PAUSE;
        let said = loop {
            match whoami::ask(&session.connection.client, &Timestamp::now).await {
                Ok(said) => break said,
                Err(_) if events.is_closed() => return,
                Err(_) => tokio::time::sleep(pause).await,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        };
        let user = said.user.clone();
        *session.who.write().unwrap_or_else(PoisonError::into_inner) = said;
        let _ = events.send(Event::Known(user));
        let lacking = lacking(&session).await;
        let _ = events.send(Event::Answer(0, Answer::Lacking(lacking)));
    })
}
