//! Checks the facts of an open plan whenever the read model changes, and makes the plan again if the user requests
//! it.

use jiff::{SignedDuration, Timestamp};

use super::{Stage, State, needed};
use crate::effect::Effect;
use crate::engine::world::feed::Touched;
use crate::model::Turn;
use crate::subjects::release_pin::stale;
use crate::subjects::service::{Command, PlannedCommand};

/// The minimum time between two checks of the facts of a garbage collection, because each check reads every release.
const PAUSE: SignedDuration = SignedDuration::from_secs(1);

impl State {
    pub fn touched(&mut self, _touched: &[Touched], turn: &mut Turn<'_>) {
        self.follow(turn);
    }

    pub fn tick(&mut self, turn: &mut Turn<'_>) {
        self.follow(turn);
    }

    fn follow(&mut self, turn: &Turn<'_>) {
        if let Stage::Applied(_, _, outcome) = &mut self.stage {
            let mut rolling = outcome.rolling.iter();
            outcome.rolled_out = rolling.all(|one| one.rollout(turn.world).is_over());
        }
        let Stage::Asking(prepared, _, _) = &self.stage else {
            return;
        };
        let recent = |at| turn.now.duration_since(at) < PAUSE;
        let costly = matches!(**prepared, PlannedCommand::Collection(_));
        self.late = costly && self.checked.is_some_and(recent);
        if !self.late {
            self.checked = Some(turn.now);
            self.check(turn);
        }
    }

    /// Returns the time at which the facts must be checked again, even if no event arrives; None if no check is due.
    pub(super) fn due(&self) -> Option<Timestamp> {
        let checked = self.checked.filter(|_| self.late)?;
        checked.checked_add(PAUSE).ok()
    }

    /// Checks all facts of the plan. Updates the input that the plan requires as its confirmation, because a changed
    /// fact can change it.
    pub(super) fn check(&mut self, turn: &Turn<'_>) {
        let Stage::Asking(prepared, _, confirmation) = &mut self.stage else {
            return;
        };
        self.stale = match (&**prepared, &self.command) {
            (PlannedCommand::Changes(action_plan), _) => {
                let unmade = action_plan
                    .unmade()
                    .and_then(|made| made.metadata.name.as_deref());
                stale::of_plan(turn.world, &action_plan.plan, unmade, turn.now)
            }
            (PlannedCommand::Mark(marking), _) => {
                stale::of_marking(turn.world, marking).into_iter().collect()
            }
            (PlannedCommand::Collection(plan), Command::Collect(gc)) => {
                stale::of_collection(turn.world, gc, plan, turn.now)
            }
            (PlannedCommand::Collection(_), _) => Vec::new(),
        };
        let now = needed(prepared, turn);
        // While the user has typed text, the confirmation does not change from a text to a single key, because the
        // typed text would disappear.
        let hides = now.is_key() && !confirmation.typed().is_empty();
        if now != confirmation.needed && !hides {
            confirmation.needed = now;
        }
    }

    /// Makes the plan again, and keeps the text that the user has typed.
    pub(super) fn plan_again(&mut self, turn: &mut Turn<'_>) {
        if let Stage::Asking(_, _, confirmation) = &self.stage {
            self.typed = confirmation.typed();
            turn.effects.push(Effect::Cancel(self.ticket));
        }
        self.ticket = turn.ticket();
        self.opened = turn.now;
        self.stage = Stage::Planning;
        self.stale.clear();
        self.checked = None;
        self.late = false;
        self.reason = None;
        self.files = None;
        self.scroll = 0;
        let command = Box::new(self.command.clone());
        turn.effects.push(Effect::Plan(self.ticket, command));
    }
}
