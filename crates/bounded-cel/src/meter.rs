//! Counts the steps and bytes of an evaluation, and stops the evaluation at a limit.

use std::time::Instant;

use super::{Bound, Budget, CelError, Limits};

/// The number of steps between two reads of the clock. The clock is read rarely, because this costs more than a step.
const CLOCK_EVERY: u64 = 1024;

/// The steps and bytes that one evaluation has used so far, and their limits.
pub(super) struct Meter {
    limits: Limits,
    most: u64,
    steps: u64,
    memory: usize,
    output: usize,
    next_look: u64,
    ends: Option<Instant>,
}

impl Meter {
    pub(super) fn new(limits: &Limits, budget: &Budget) -> Self {
        Self {
            limits: Limits {
                deadline: limits.deadline.min(budget.deadline),
                output: limits.output.min(budget.output),
                ..*limits
            },
            most: limits.steps.min(budget.steps),
            steps: 0,
            memory: 0,
            output: 0,
            next_look: CLOCK_EVERY,
            ends: match (Instant::now().checked_add(limits.deadline), budget.ends) {
                (Some(own), Some(shared)) => Some(own.min(shared)),
                (own, shared) => own.or(shared),
            },
        }
    }

    /// Subtracts the steps and output bytes of this evaluation from a budget that several evaluations share.
    pub(super) fn settle(&self, budget: &mut Budget) {
        budget.steps = budget.steps.saturating_sub(self.steps);
        budget.output = budget.output.saturating_sub(self.output);
    }

    /// Counts steps before the evaluation makes them. Fails if the evaluation would exceed its limit.
    pub(super) fn step(&mut self, steps: u64) -> Result<(), CelError> {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > self.most {
            return Err(CelError::limit(Bound::Steps, self.most));
        }
        if self.steps >= self.next_look {
            self.next_look = self.steps + CLOCK_EVERY;
            if self.ends.is_some_and(|ends| Instant::now() > ends) {
                let limit = self.limits.deadline.as_millis();
                return Err(CelError::limit(Bound::Deadline, limit));
            }
        }
        Ok(())
    }

    /// Counts the steps for reading a text of this many bytes.
    pub(super) fn scan(&mut self, bytes: usize) -> Result<(), CelError> {
        self.step(1 + bytes as u64 / 32)
    }

    /// Counts bytes before the evaluation allocates them. Fails if the evaluation would exceed its limit.
    pub(super) fn make(&mut self, bytes: usize) -> Result<(), CelError> {
        self.memory = self.memory.saturating_add(bytes);
        if self.memory > self.limits.memory {
            return Err(CelError::limit(Bound::Memory, self.limits.memory));
        }
        self.step(1 + bytes as u64 / 128)
    }

    /// Counts bytes of the result as JSON. Fails if the result exceeds its limit.
    pub(super) fn output(&mut self, bytes: usize) -> Result<(), CelError> {
        self.output = self.output.saturating_add(bytes);
        match self.output > self.limits.output {
            true => Err(CelError::limit(Bound::Output, self.limits.output)),
            false => Ok(()),
        }
    }

    /// Fails if a loop would run over more items than its limit.
    pub(super) fn range(&self, items: usize) -> Result<(), CelError> {
        match items > self.limits.range {
            true => Err(CelError::limit(Bound::Range, self.limits.range)),
            false => Ok(()),
        }
    }
}
